package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"parley/config"
	"parley/store"
)

// Commands see neither what parley keeps nor its database's files with the password,
// which for root are elsewhere.
func TestPrivateFolders(t *testing.T) {
	c := config.Default()
	c.DataDir = t.TempDir()
	server, err := store.PrivateDir(c.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(server) })
	for _, want := range []string{c.DataDir, server, filepath.Join(c.DataDir, "workspace")} {
		if !slices.Contains(private(c), want) {
			t.Errorf("commands see %s", want)
		}
	}
	c.Database.URL = "postgres://elsewhere/parley"
	if slices.Contains(private(c), server) && server != c.DataDir {
		t.Error("a server that is not used is looked after")
	}
}
