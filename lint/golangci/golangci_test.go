package golangci_test

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/trimtab-dev/trimtab/lint"
	"github.com/trimtab-dev/trimtab/lint/golangci"
)

// TestPlugin: golangci-lint finds the linter by its name, and gets every analyzer with types.
func TestPlugin(t *testing.T) {
	t.Parallel()
	build, err := register.GetPlugin(golangci.Name)
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := build(nil)
	if err != nil {
		t.Fatal(err)
	}
	analyzers, err := plugin.BuildAnalyzers()
	if err != nil {
		t.Fatal(err)
	}
	if err := analysis.Validate(analyzers); err != nil {
		t.Error(err)
	}
	if want := len(lint.Analyzers()); len(analyzers) != want || want == 0 {
		t.Errorf("%d analyzers, want %d", len(analyzers), want)
	}
	if got := plugin.GetLoadMode(); got != register.LoadModeTypesInfo {
		t.Errorf("load mode %q", got)
	}
}
