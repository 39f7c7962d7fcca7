// Package golangci makes the analyzers of package lint a linter of golangci-lint, by its system of module plugins. A
// custom golangci-lint that imports this package has the linter trimtab.
package golangci

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/trimtab-dev/trimtab/lint"
)

// Name is the name of the linter in the configuration of golangci-lint.
const Name = "trimtab"

// The plugin system of golangci-lint finds what registers itself by being imported.
var _ = registered(Name)

// registered registers the plugin and returns its name.
func registered(name string) string {
	register.Plugin(name, func(any) (register.LinterPlugin, error) { return plugin{}, nil })
	return name
}

type plugin struct{}

// BuildAnalyzers implements register.LinterPlugin.
func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return lint.Analyzers(), nil }

// GetLoadMode implements register.LinterPlugin.
func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
