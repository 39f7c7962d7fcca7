package operator

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUseOf: each request is counted as what a permission for it names.
func TestUseOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why, request string
		want         string // verb group resource subresource namespace name
	}{
		"core":       {"the group has no name", "GET /api/v1/namespaces/shop/pods/a", "get||pods||shop|a"},
		"group":      {"most resources", "PATCH /apis/apps/v1/namespaces/shop/deployments/a", "patch|apps|deployments||shop|a"},
		"part":       {"a status has its own permission", "PATCH /apis/apps/v1/namespaces/shop/deployments/a/status", "patch|apps|deployments|status|shop|a"},
		"cluster":    {"a kind without namespaces", "PUT /apis/g.io/v1/things/a", "update|g.io|things|||a"},
		"list":       {"of one namespace", "GET /api/v1/namespaces/shop/pods?limit=500", "list||pods||shop|"},
		"list all":   {"of all namespaces", "GET /api/v1/pods", "list||pods|||"},
		"watch":      {"it is another verb", "GET /api/v1/pods?watch=true", "watch||pods|||"},
		"watch 1":    {"another way to ask for it", "GET /api/v1/pods?watch=1&fieldSelector=x", "watch||pods|||"},
		"create":     {"the name is in the body", "POST /api/v1/namespaces/shop/pods", "create||pods||shop|"},
		"token":      {"the name is that of what it belongs to", "POST /api/v1/namespaces/shop/serviceaccounts/a/token", "create||serviceaccounts|token|shop|a"},
		"delete":     {"one", "DELETE /api/v1/namespaces/shop/pods/a", "delete||pods||shop|a"},
		"delete all": {"several", "DELETE /api/v1/namespaces/shop/pods", "deletecollection||pods||shop|"},
		"namespace":  {"it is an object, too", "GET /api/v1/namespaces/shop", "get||namespaces|||shop"},
		"finalize":   {"and has parts", "PUT /api/v1/namespaces/shop/finalize", "update||namespaces|finalize||shop"},
		"proxy":      {"the API server may be behind a path", "GET /k8s/clusters/c-1/apis/apps/v1/namespaces/shop/deployments/a", "get|apps|deployments||shop|a"},
		"discovery":  {"it needs no permission", "GET /apis/apps/v1", "list|apps||||"},
		"version":    {"no resource", "GET /version", "|||||"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			method, path, _ := strings.Cut(tt.request, " ")
			of, namespace, object := useOf(httptest.NewRequest(method, path, http.NoBody)) //nolint:noctx // nothing is sent
			if got := strings.Join([]string{of.verb, of.group, of.resource, of.subresource, namespace, object}, "|"); got != tt.want {
				t.Errorf("%s: %s is %s, want %s", tt.why, tt.request, got, tt.want)
			}
		})
	}
}
