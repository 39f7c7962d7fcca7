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

// basic tells whether a request is among those that a new cluster's roles system:discovery and
// system:basic-user allow everybody who has a name.
func basic(asked authorizer.Attributes) bool {
	if who := asked.GetUser(); who == nil || !slices.Contains(who.GetGroups(), user.AllAuthenticated) {
		return false
	}
	if asked.IsResourceRequest() {
		self := asked.GetAPIGroup() == "authorization.k8s.io" && slices.Contains([]string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}, asked.GetResource()) ||
			asked.GetAPIGroup() == "authentication.k8s.io" && asked.GetResource() == "selfsubjectreviews"
		return self && asked.GetVerb() == "create"
	}
	root, _, _ := strings.Cut(strings.Trim(asked.GetPath(), "/"), "/")
	return asked.GetVerb() == "get" && slices.Contains([]string{"api", "apis", "healthz", "livez", "openapi", "readyz", "version"}, root)
}
