package operator_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
)

// TestPrintedDashboard: it can be parsed, and its queries are about this operator alone.
func TestPrintedDashboard(t *testing.T) {
	t.Parallel()
	got := runArgs(t, probeOperator(), "dashboard")
	var board struct {
		Title, UID string
		Panels     []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(got.Out), &board); err != nil || got.Code != 0 {
		t.Fatalf("exit code %d, %v: %s", got.Code, err, got.ErrOut)
	}
	if board.Title != "probe-operator" || board.UID != "probe-operator" || len(board.Panels) < 10 {
		t.Errorf("title %q, uid %q, %d panels", board.Title, board.UID, len(board.Panels))
	}
	if expr := board.Panels[0].Targets[0].Expr; !strings.Contains(expr, `{controller=~"probe", kind=~"Probe"}`) {
		t.Errorf("%s does not select the operator's controllers", expr)
	}
}

// TestPrintedAlerts: they can be parsed, and their expressions are about this operator alone.
func TestPrintedAlerts(t *testing.T) {
	t.Parallel()
	got := runArgs(t, probeOperator(), "alerts")
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.UnmarshalStrict([]byte(got.Out), &struct{ Groups []any }{}); err != nil || got.Code != 0 {
		t.Fatalf("exit code %d, %v: %s", got.Code, err, got.ErrOut)
	}
	if err := yaml.Unmarshal([]byte(got.Out), &rules); err != nil {
		t.Fatal(err)
	}
	if len(rules.Groups) != 1 || rules.Groups[0].Name != "probe-operator" || len(rules.Groups[0].Rules) < 5 {
		t.Fatalf("groups %+v", rules.Groups)
	}
	if r := rules.Groups[0].Rules[0]; !strings.Contains(r.Expr, `{controller=~"probe", kind=~"Probe"}`) {
		t.Errorf("%s: %s does not select the operator's controllers", r.Alert, r.Expr)
	}
}

// opened counts the spans of controllers.
type opened struct {
	mu sync.Mutex
	by map[string]int
}

func (o *opened) Open(ctx context.Context, controller string, obj trace.Object, _ trace.Start) (context.Context, func(trace.End)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.by[controller+" "+obj.Name]++
	return ctx, func(trace.End) {}
}

// TestSpansOfOptions: the spans in the options are those of each controller.
func TestSpansOfOptions(t *testing.T) {
	t.Parallel()
	spans := &opened{by: map[string]int{}}
	o := probeOperator()
	o.Spans = spans
	op := operatortest.Run(t, o)
	in := installed{namespace: op.Namespace, client: op.Client}
	testenv.Wait(t, op.Client, in.probe(t, "traced"), "the operator to greet", greeted)
	spans.mu.Lock()
	defer spans.mu.Unlock()
	if spans.by["probe traced"] == 0 {
		t.Errorf("no span of a pass over the object: %v", spans.by)
	}
}
