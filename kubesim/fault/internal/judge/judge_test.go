package judge

import "testing"

// TestImportPath proves that the command to replay names the package of the test.
func TestImportPath(t *testing.T) {
	t.Parallel()
	for binary, want := range map[string]string{
		"example.com/op/internal/controller.test": "example.com/op/internal/controller",
		"example.com/op.test":                     "example.com/op", // the module's root
		"command-line-arguments.test":             "",               // go test a_test.go
		"_/home/me/op.test":                       "",               // outside of any module
		"":                                        "",               // another tool's
	} {
		if got := importPath(binary); got != want {
			t.Errorf("the package of %q is %q, want %q", binary, got, want)
		}
	}
}
