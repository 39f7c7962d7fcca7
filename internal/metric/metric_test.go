package metric_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/metric"
)

// expressions returns the expressions of the dashboard and of the alerts.
func expressions(t *testing.T, s metric.Scope) []string {
	t.Helper()
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	data, err := s.Dashboard()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr, For string }
		}
	}
	if err := yaml.Unmarshal(s.Alerts(), &rules); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	for _, r := range rules.Groups[0].Rules {
		all = append(all, r.Expr)
	}
	if len(all) < 25 || slices.Contains(all, "") {
		t.Fatalf("%d expressions: %q", len(all), all)
	}
	return all
}

var (
	word     = regexp.MustCompile(`[a-z_][a-z0-9_]*`)
	named    = regexp.MustCompile(`trimtab_[a-z_]+`)
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
	selector = regexp.MustCompile(`[{ ]([a-z_]+)(?:=~?|!=)"`)
)

// unknown returns what an expression names that does not exist, and the metrics that it names.
func unknown(expr string) (problems, names []string) {
	labels := []string{}
	for _, name := range named.FindAllString(expr, -1) {
		i := slices.IndexFunc(metric.All(), func(m metric.Metric) bool {
			if m.Type == metric.Histogram {
				return name == m.Name+"_bucket"
			}
			return name == m.Name
		})
		if i < 0 {
			problems = append(problems, "no metric "+name)
			continue
		}
		m := metric.All()[i]
		names, labels = append(names, m.Name), append(labels, m.Labels...)
		if m.Type == metric.Histogram {
			labels = append(labels, "le")
		}
		if growing := strings.Contains(expr, "rate(") || strings.Contains(expr, "increase("); growing != (m.Type != metric.Gauge) {
			problems = append(problems, "a "+string(m.Type)+" is used like another type: "+name)
		}
	}
	used := []string{}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		used = append(used, word.FindAllString(g[1], -1)...)
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		used = append(used, s[1])
	}
	for _, label := range used {
		if !slices.Contains(labels, label) {
			problems = append(problems, "no label "+label)
		}
	}
	if len(names) == 0 {
		problems = append(problems, "no metric at all")
	}
	return problems, names
}

// TestExpressions: each expression names metrics and labels that exist, and each metric is in one.
func TestExpressions(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	scoped := metric.Scope{Operator: "shop", Controllers: []string{"cart", "till"}, Kinds: []string{"Cart"}}
	for _, expr := range slices.Concat(expressions(t, metric.Scope{}), expressions(t, scoped)) {
		problems, names := unknown(expr)
		if len(problems) > 0 {
			t.Errorf("%s: %s", expr, strings.Join(problems, ", "))
		}
		for _, name := range names {
			shown[name] = true
		}
	}
	for _, m := range metric.All() {
		if !shown[m.Name] {
			t.Errorf("nothing shows %s", m.Name)
		}
	}
	for _, wrong := range []string{
		"sum (rate(trimtab_steps_total[5m]))", "sum by (object) (rate(trimtab_passes_total[5m]))", "sum (rate(trimtab_objects[5m]))",
		`sum (trimtab_objects{name="a"})`, `sum (trimtab_objects{name!="a"})`, `sum (trimtab_objects{kind="a", name=~"a"})`, "rate(trimtab_pass_duration_seconds[5m])", "up",
	} {
		if problems, _ := unknown(wrong); len(problems) == 0 {
			t.Errorf("nothing is wrong with %s", wrong)
		}
	}
}

// TestTable: no metric is made anywhere else, names follow the conventions, and labels are closed sets.
func TestTable(t *testing.T) {
	t.Parallel()
	closed := []string{"controller", "kind", "operator", "outcome", "cause", "target", "result", "reason", "state", "failed", "source", "status", "operation", "op", "class"}
	seen := map[string]bool{}
	for _, m := range metric.All() {
		if seen[m.Name] || m.Help == "" || strings.HasSuffix(m.Name, "_total") != (m.Type == metric.Counter) || strings.HasSuffix(strings.TrimSuffix(m.Name, "_timestamp_seconds"), "_seconds") != (m.Type == metric.Histogram) {
			t.Errorf("%+v is there twice, has no help, or is misnamed", m)
		}
		seen[m.Name] = true
		for _, l := range m.Labels {
			if !slices.Contains(closed, l) {
				t.Errorf("%s has the label %s, which is not a closed set", m.Name, l)
			}
		}
	}
	literal := regexp.MustCompile(`"trimtab_[a-z_]+"`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "internal/metric/table.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if found := literal.Find(content); found != nil {
			t.Errorf("%s has %s; metrics are described in internal/metric", path, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDocument: docs/metrics.md has the table of metrics.
func TestDocument(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), metric.Table()) {
		t.Errorf("docs/metrics.md needs this table:\n%s", metric.Table())
	}
}

// TestScope: every series that has the labels of controllers is selected by them.
func TestScope(t *testing.T) {
	t.Parallel()
	s := metric.Scope{Controllers: []string{"cart", "till"}, Kinds: []string{"Cart"}}
	for _, expr := range expressions(t, s) {
		for _, name := range named.FindAllStringIndex(expr, -1) {
			_, after, _ := strings.Cut(expr[name[1]:], "{")
			selected, _, _ := strings.Cut(after, "}")
			i := slices.IndexFunc(metric.All(), func(m metric.Metric) bool { return strings.HasPrefix(expr[name[0]:name[1]], m.Name) })
			for label, want := range map[string]string{"controller": `controller=~"cart|till"`, "kind": `kind=~"Cart"`} {
				if slices.Contains(metric.All()[i].Labels, label) && !strings.Contains(selected, want) {
					t.Errorf("%s: the series are not limited by %s", expr, want)
				}
			}
		}
	}
}
