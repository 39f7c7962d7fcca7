package lint

import (
	"os"
	"strings"

	"golang.org/x/tools/go/analysis/unitchecker"
)

// IsVet reports whether arguments of a command are those that go vet gives to its tool: -V=full, -flags, or a configuration
// that comes last.
func IsVet(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	_, err := os.Stat(last)
	return args[0] == "-V=full" || args[0] == "-flags" || strings.HasSuffix(last, ".cfg") && err == nil
}

// Vet does what go vet asks of its tool, with the arguments of the process, and ends the process. Call it first in main, if
// [IsVet].
func Vet() { unitchecker.Main(Analyzers()...) }
