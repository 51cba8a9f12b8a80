package main

import (
	"go.uber.org/zap"

	"parley/agentcore"
	"parley/agentcore/tool"
	fetch "parley/agentcore/tool/web"
)

// webTools are web_fetch and, where a provider for it is configured, web_search.
func (w wiring) webTools(enabled func(string) bool) ([]tool.Tool, error) {
	var tools []tool.Tool
	if enabled("web_fetch") {
		chain := w.models.chain("")
		if aux := w.config.Auxiliary.WebExtract; aux.Model != "" {
			chain = aux
		}
		t, err := fetch.NewFetch(w.config.Tools.Web, fetch.Deps{Extract: agentcore.Extractor{
			Model: w.models.set.Chain(chain), ID: chain.Model, Window: w.models.Window(chain), Book: w.book(),
		}})
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	if off := w.config.Tools.WebSearch.Off(); off != "" {
		w.log.Debug("the tool web_search is off", zap.String("why", off))
	} else if enabled("web_search") {
		s, err := fetch.NewSearch(w.config.Tools.WebSearch)
		if err != nil {
			return nil, err
		}
		t, err := s.Tool()
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, nil
}
