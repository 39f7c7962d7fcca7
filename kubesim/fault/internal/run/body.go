package run

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// mostOfBody is as much of a body as is kept.
const mostOfBody = 500

// bodyOf is the body of a patch in one line, without what is in a Secret and without the scenario's secrets. The request
// still has it.
func bodyOf(c *history.Call, r *http.Request, secrets []string) string {
	if c.Verb != "patch" || r.Body == nil {
		return ""
	}
	text, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	if err == nil && c.Group == "" && c.Resource == "secrets" {
		var body any
		if err = json.Unmarshal(text, &body); err == nil {
			text, err = json.Marshal(withoutData(body))
		}
	}
	var line bytes.Buffer
	if err != nil || json.Compact(&line, text) != nil {
		return ""
	}
	shown := line.String()
	for _, s := range secrets {
		if quoted, err := json.Marshal(s); err == nil && s != "" {
			shown = strings.ReplaceAll(shown, strings.Trim(string(quoted), `"`), "…")
		}
	}
	if runes := []rune(shown); len(runes) > mostOfBody {
		return string(runes[:mostOfBody]) + "…"
	}
	return shown
}

// sentIn is the object in the body of a create or a server-side apply; nil for others. The request still has it.
func sentIn(c *history.Call, r *http.Request) map[string]any {
	applies := c.Verb == "patch" && r.Header.Get("Content-Type") == string(types.ApplyPatchType)
	if c.Subresource != "" || c.Verb != "create" && !applies {
		return nil
	}
	return apiserver.Content(apiserver.Body(r))
}

// withoutData leaves the data of a Secret out of a patch, of whatever kind that is.
func withoutData(body any) any {
	isData := func(name string) bool { return slices.Contains([]string{"data", "stringData"}, name) }
	switch b := body.(type) {
	case map[string]any:
		for key := range b {
			if isData(key) {
				b[key] = "…"
			}
		}
		if m, ok := b["metadata"].(map[string]any); ok { // kubectl keeps all of it there
			if a, ok := m["annotations"].(map[string]any); ok && a[lastApplied] != nil {
				a[lastApplied] = "…"
			}
		}
	case []any: // operations
		for _, e := range b {
			o, ok := e.(map[string]any)
			path, _ := o["path"].(string)
			field, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
			if ok && o["value"] != nil && (path == "" || isData(field)) {
				o["value"] = "…"
			}
		}
	}
	return body
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
