package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlan: the command runs the operator's own, and ends with its exit code.
func TestPlan(t *testing.T) {
	t.Parallel()
	operator := filepath.Join(t.TempDir(), "operator")
	if err := os.WriteFile(operator, []byte("#!/bin/sh\necho \"$@\"\nexit 2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		why  string
		args []string
		code int
		want string
	}{
		"operator": {
			why: "flags and the exit code are passed on", args: []string{"folder/orders", "-n", "shop", "--operator", operator, "--", "--root=x"},
			code: 2, want: "plan folder/orders --object-namespace=shop --root=x\n",
		},
		"no operator": {why: "without a program, it says what helps", args: []string{"folder/orders"}, code: 1, want: "--operator"},
		"two objects": {why: "one object is planned", args: []string{"a/b", "c/d", "--operator", operator}, code: 1, want: "one object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			code := Main(t.Context(), append([]string{"plan"}, tt.args...), Streams{In: strings.NewReader(""), Out: &out, Err: &out})
			if code != tt.code || !strings.Contains(out.String(), tt.want) {
				t.Errorf("%s: exit code %d, want %d; it printed %q, want %q", tt.why, code, tt.code, &out, tt.want)
			}
		})
	}
}
