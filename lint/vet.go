package lint

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/unitchecker"
)

// IsVet reports whether arguments of a command are those that go vet gives to its tool: -V=full, -flags, or a configuration
// that comes last.
func IsVet(args []string) bool {
	return len(args) > 0 && (args[0] == "-V=full" || args[0] == "-flags" || strings.HasSuffix(args[len(args)-1], ".cfg"))
}

// Vet does what go vet asks of its tool, with the arguments of the process, and ends the process. Call it first in main, if
// [IsVet].
func Vet() {
	if args := os.Args; len(args) == 2 && strings.HasSuffix(args[1], ".cfg") || len(args) > 2 {
		if err := skip(args[len(args)-1]); err == nil {
			return
		}
	}
	unitchecker.Main(Analyzers()...)
}

// skip writes that nothing is known about a dependency that does not use controller-runtime, without looking at its source.
// It fails for all others.
func skip(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var unit unitchecker.Config
	if err := json.Unmarshal(data, &unit); err != nil {
		return err
	}
	uses := func(path string) bool {
		return strings.HasPrefix(path+"/", runtimePath+"/") || strings.HasPrefix(path+"/", ownPath+"/")
	}
	if !unit.VetxOnly || unit.VetxOutput == "" || slices.ContainsFunc(imports(unit), uses) {
		return fmt.Errorf("%s uses controller-runtime", unit.ImportPath)
	}
	return os.WriteFile(unit.VetxOutput, nil, 0o600)
}

func imports(unit unitchecker.Config) []string {
	var all []string
	for _, path := range unit.ImportMap {
		all = append(all, path)
	}
	return all
}
