package release_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/component-base/version"

	"github.com/trimtab-dev/trimtab/devcluster/internal/release"
)

func TestApply(t *testing.T) {
	if err := release.Apply(); err != nil {
		t.Fatal(err)
	}
	got := version.Get()
	if got.GitVersion != release.Version {
		t.Errorf("GitVersion = %q, want %q", got.GitVersion, release.Version)
	}
	if want := strings.Join(strings.Split(strings.TrimPrefix(release.Version, "v"), ".")[:2], "."); got.Major+"."+got.Minor != want {
		t.Errorf("major and minor = %s.%s, want %s", got.Major, got.Minor, want)
	}
}

func TestVersionIsTheOneOfGoMod(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (\S+)`).FindSubmatch(mod)
	if m == nil {
		t.Fatal("go.mod does not require k8s.io/kubernetes")
	}
	if string(m[1]) != release.Version {
		t.Errorf("release.Version = %q, go.mod requires %q", release.Version, m[1])
	}
}
