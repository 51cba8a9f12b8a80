package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"parley/config"
)

func (a *app) configCommand() *cobra.Command {
	return group("config", "Check or show the configuration", a.configCheckCommand(), a.configShowCommand())
}

func (a *app) configCheckCommand() *cobra.Command {
	var asJSON bool
	return jsonFlag(&cobra.Command{
		Use:   "check",
		Short: "Report every mistake in the configuration, with its line",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return a.configCheck(asJSON) },
	}, &asJSON)
}

// configCheck fails with the mistakes. That no model can be called is one here,
// although the commands that need none do with it.
func (a *app) configCheck(asJSON bool) error {
	c, err := a.loadConfig()
	var warnings []string
	if err == nil {
		warnings = c.Warnings()
		_, err = loadModels(c, zap.NewNop())
	}
	wrong, isConfig := errors.AsType[*config.Error](err)
	if err != nil && !isConfig {
		return err
	}
	if asJSON {
		report := struct {
			File     string           `json:"file"`
			OK       bool             `json:"ok"`
			Problems []config.Problem `json:"problems"`
			Warnings []string         `json:"warnings"`
		}{OK: err == nil, Problems: []config.Problem{}, Warnings: append([]string{}, warnings...)}
		if c != nil {
			report.File = c.File()
		}
		if err != nil {
			report.File, report.Problems = wrong.File, wrong.Problems
		}
		return errors.Join(printJSON(a.stdout, report), err)
	}
	for _, w := range warnings {
		fmt.Fprintln(a.stdout, "warning:", w)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: fine\n", sourceOf(c))
	return err
}

func sourceOf(c *config.Config) string {
	if c.File() == "" {
		return "environment"
	}
	return c.File()
}

func (a *app) configShowCommand() *cobra.Command {
	var asJSON bool
	return jsonFlag(&cobra.Command{
		Use:   "show",
		Short: "Print the configuration in force, secrets covered",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return a.configShow(asJSON) },
	}, &asJSON)
}

func (a *app) configShow(asJSON bool) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	shown, err := c.Show()
	if err != nil {
		return err
	}
	if asJSON {
		var tree any
		if err := yaml.Unmarshal(shown, &tree); err != nil {
			return err
		}
		return printJSON(a.stdout, tree)
	}
	_, err = fmt.Fprintf(a.stdout, "# from: %s\n%s", sourceOf(c), shown)
	return err
}
