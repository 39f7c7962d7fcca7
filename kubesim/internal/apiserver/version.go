package apiserver

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/version"
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
