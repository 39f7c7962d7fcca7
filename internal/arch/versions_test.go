package arch

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// tested is a row of the table of versions: what, and its version.
var tested = regexp.MustCompile(`(?m)^\| ([^|]+) \| (\d+\.\d+) \|`)

// compatibility finds rows of the table of versions that go.mod files contradict.
func compatibility(t *tree) []string {
	const document = "SCOPE.md"
	_, section, _ := strings.Cut(t.documents[document], "\n## Versions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	said := map[string]string{}
	for _, m := range tested.FindAllStringSubmatch(section, -1) {
		said[m[1]] = m[2]
	}
	var findings []string
	required := requiredVersions(t)
	for _, what := range slices.Sorted(maps.Keys(required)) {
		if said[what] != required[what] {
			findings = append(findings, finding(document, "says %q of %s in the table under Versions, and go.mod %s", said[what], what, required[what]))
		}
	}
	for what := range said {
		if required[what] == "" {
			findings = append(findings, finding(document, "has a version of %s that nothing is compared with", what))
		}
	}
	return findings
}

// requiredVersions returns what is tested, by its name in the table.
func requiredVersions(t *tree) map[string]string {
	from := map[string][2]string{
		"controller-runtime":       {".", "sigs.k8s.io/controller-runtime"},
		"libraries of Kubernetes":  {".", "k8s.io/client-go"},
		"API server of Kubernetes": {"devcluster", "k8s.io/kubernetes"},
	}
	versions := map[string]string{}
	for _, m := range t.modules {
		if m.dir == "." && m.mod.Go != nil {
			versions["Go"] = strings.TrimPrefix(semver.MajorMinor("v"+m.mod.Go.Version), "v")
		}
		for what, place := range from {
			for _, r := range m.mod.Require {
				if m.dir == place[0] && r.Mod.Path == place[1] {
					versions[what] = strings.TrimPrefix(semver.MajorMinor(r.Mod.Version), "v")
				}
			}
		}
	}
	return versions
}
