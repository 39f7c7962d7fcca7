package apiserver

import (
	"encoding/json"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Version is that of the Kubernetes whose code runs here.
const Version = "v1.37.1"

// introduce answers requests about the server itself, and reports whether it did.
func introduce(w http.ResponseWriter, r *http.Request) bool {
	switch r.URL.Path {
	case "/version", "/version/":
		parts := strings.Split(strings.TrimPrefix(Version, "v"), ".")
		text, err := json.Marshal(version.Info{
			Major: parts[0], Minor: parts[1], GitVersion: Version, GitTreeState: "clean",
			GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
		})
		if err != nil {
			panic(err) // it is JSON by nature
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // never fails
	case "/healthz", "/livez", "/readyz":
		_, _ = w.Write([]byte("ok")) // never fails
	default:
		return false
	}
	return true
}

// basic reports whether a request is among those that a new cluster's roles system:discovery,
// system:public-info-viewer and system:basic-user allow everybody who has a name.
func basic(asked authorizer.Attributes) bool {
	who := asked.GetUser()
	return who != nil && slices.Contains(who.GetGroups(), user.AllAuthenticated) && use(asked, true).isBasic()
}

// isBasic reports whether every authenticated user may do that.
func (u Use) isBasic() bool {
	if u.Path != "" {
		root, below, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
		return u.Verb == "get" && (slices.Contains([]string{"api", "apis", "openapi"}, root) ||
			below == "" && slices.Contains([]string{"healthz", "livez", "readyz", "version"}, root))
	}
	self := map[string][]string{
		"authorization.k8s.io":  {"selfsubjectaccessreviews", "selfsubjectrulesreviews"},
		"authentication.k8s.io": {"selfsubjectreviews"},
	}
	return u.Verb == "create" && u.Subresource == "" && slices.Contains(self[u.Group], u.Resource)
}

// isBasic reports whether a grant allows only what every authenticated user may do. The verb * counts as the only
// one that has an effect there.
func (g grant) isBasic() bool {
	u := Use{Verb: g.verb, Group: g.group, Resource: g.resource, Path: strings.ReplaceAll(g.path, "*", "any")}
	switch {
	case g.verb == "*" && g.path != "":
		u.Verb = "get"
	case g.verb == "*":
		u.Verb = "create"
	}
	return u.isBasic()
}
