package dev

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestScreen: on a terminal, the table is below all lines, and is replaced instead of repeated.
func TestScreen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newScreen(&out)
	s.terminal, s.width = true, func() int { return 60 }
	s.show("a", &row{name: "Widget/a", state: "Ready", ready: true}, "a is ready\n")
	s.show("b", &row{name: "Widget/b", state: "Pending", message: strings.Repeat("long ", 20)}, "b is new\n")
	s.show("a", nil, "a is gone\n")
	line := strings.Repeat("─", 59) + "\n"
	a := fmt.Sprintf("  ✔ %-28s %-12s \n", "Widget/a", "Ready")
	b := fmt.Sprintf("  … %-28s %-12s %s", "Widget/b", "Pending", "long long lo…\n")
	want := "a is ready\n" + line + a +
		"\033[2A\033[Jb is new\n" + line + b + a +
		"\033[3A\033[Ja is gone\n" + line + b
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// TestNoTerminal: elsewhere there are only lines.
func TestNoTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newScreen(&out).show("a", &row{name: "Widget/a"}, "a is new\n")
	if out.String() != "a is new\n" {
		t.Errorf("output: %q", out.String())
	}
}

// TestMany: the table stays short, and what is not ready comes first.
func TestMany(t *testing.T) {
	t.Parallel()
	s := newScreen(&bytes.Buffer{})
	for i := range 20 {
		s.show(fmt.Sprint(i), &row{name: fmt.Sprintf("Widget/%02d", i), ready: i != 19}, "")
	}
	table := s.table()
	if len(table) != mostRows+2 || !strings.Contains(table[1], "Widget/19") || table[len(table)-1] != "  … and 8 more" {
		t.Errorf("the table:\n%s", strings.Join(table, "\n"))
	}
}

func TestRowOf(t *testing.T) {
	t.Parallel()
	ready := func(status string) []any {
		return []any{map[string]any{"type": "Ready", "status": status, "reason": "Because", "message": "of\nthis"}}
	}
	tests := map[string]struct {
		why    string
		status map[string]any
		want   row
	}{
		"no status":  {"nobody has seen it", nil, row{name: "Widget/a", state: "New"}},
		"conditions": {"kinds of others have no state", map[string]any{"conditions": ready("False")}, row{name: "Widget/a", state: "Because", message: "of this"}},
		"ready":      {"this is what one waits for", map[string]any{"conditions": ready("True"), "state": "Succeeded"}, row{name: "Widget/a", state: "Ready", message: "of this", ready: true}},
		"state":      {"trimtab's kinds have one", map[string]any{"conditions": ready("Unknown"), "state": "Creating", "message": "it is created"}, row{name: "Widget/a", state: "Creating", message: "it is created"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unstructured.Unstructured{Object: map[string]any{"kind": "Widget", "metadata": map[string]any{"name": "a", "namespace": "default"}}}
			if tt.status != nil {
				u.Object["status"] = tt.status
			}
			if diff := cmp.Diff(tt.want, rowOf(u), cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}
