package run

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// TestBody proves that the body of a patch is kept in one line without what is secret, and that the request still has it.
func TestBody(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ why, verb, resource, body, want string }{
		"patch":      {"as it is, in one line", "patch", "configmaps", "{\"metadata\":\n {\"annotations\": null}}", `{"metadata":{"annotations":null}}`},
		"update":     {"whole objects are long", "update", "configmaps", `{"data":{}}`, ""},
		"secret":     {"data are secret", "patch", "secrets", `{"metadata":{"labels":{"a":"b"}},"stringData":{"a":"p"},"data":{"a":"cA=="}}`, `{"data":"…","metadata":{"labels":{"a":"b"}},"stringData":"…"}`},
		"operations": {"so are they there", "patch", "secrets", `[{"op":"add","path":"/data/a","value":"cA=="},{"op":"add","path":"/metadata/labels/a","value":"b"}]`, `[{"op":"add","path":"/data/a","value":"…"},{"op":"add","path":"/metadata/labels/a","value":"b"}]`},
		"applied":    {"kubectl keeps them", "patch", "secrets", `{"metadata":{"annotations":{"` + lastApplied + `":"cA=="}}}`, `{"metadata":{"annotations":{"` + lastApplied + `":"…"}}}`},
		"named":      {"the scenario names it", "patch", "configmaps", `{"data":{"url":"https://me:hunter2@x"}}`, `{"data":{"url":"https://me:…@x"}}`},
		"no JSON":    {"nobody could read it", "patch", "configmaps", "\x00", ""},
		"long":       {"it is cut", "patch", "configmaps", `{"a":"` + strings.Repeat("x", 1000) + `"}`, `{"a":"` + strings.Repeat("x", mostOfBody-6) + "…"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://x", strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if got := bodyOf(&history.Call{Verb: test.verb, Resource: test.resource}, r, []string{"hunter2"}); got != test.want {
				t.Errorf("%s: got %s, want %s", test.why, got, test.want)
			}
			if left, err := io.ReadAll(r.Body); err != nil || string(left) != test.body {
				t.Errorf("of the request %q is left, error %v", left, err)
			}
		})
	}
}
