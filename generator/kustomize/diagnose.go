package kustomize

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
)

// tried is a kustomization that kustomize can build by itself.
type tried struct {
	folder, file string
	resources    []string
}

// diagnose says in which kustomization an error of kustomize comes from: in the first one that cannot be built, of those
// that are built before others.
func (c *checker) diagnose(err error) error {
	for _, k := range c.tried {
		_, reason := run(c.tree.with(nil), inFiles(k.folder))
		if reason == nil {
			continue
		}
		if twice := c.twice(k); twice != nil {
			reason = twice
		}
		return fmt.Errorf("%s: %w", k.file, reason)
	}
	return err
}

// twice returns an error if two resources of a kustomization have the same object.
func (c *checker) twice(k tried) error {
	from := map[string]string{}
	for _, name := range k.resources {
		folder, err := c.resolve(source{name: k.file, folder: k.folder}, name)
		if err != nil || !c.tree.folders[folder] {
			continue
		}
		built, err := run(c.tree.with(nil), inFiles(folder))
		if err != nil {
			continue
		}
		for _, r := range built.Resources() {
			id := r.CurId().String()
			if before := from[id]; before != "" {
				return fmt.Errorf("the %s %s is there twice, from %s and from %s", r.GetKind(), r.GetName(), before, folder)
			}
			from[id] = folder
		}
	}
	return nil
}

// resourcesOf returns the kustomizations that a kustomization is over, and the files with its objects.
func resourcesOf(k *types.Kustomization) []string {
	return slices.Concat(k.Resources, k.Bases) //nolint:staticcheck // users have deprecated fields
}

// noise is what errors of kustomize have between what matters: what it tried before, and contents, which can be secret.
var noise = regexp.MustCompile("accumulation err='[^:]*: [^:]* must resolve to a file': | with config: `.*?`|accumulating resources: |( from)? \\[(patch|path): .*\\]")

// oneLine returns an error of kustomize on one line, with the paths of its users.
func oneLine(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	text = strings.NewReplacer(
		".."+filesRoot+"/", "", filesRoot+"/", "", ".."+filesRoot, ".", filesRoot, ".", overlayRoot, overlayName,
	).Replace(text)
	text = regexp.MustCompile(`produces ID conflict: .*`).ReplaceAllString(text, "makes two objects the same") // it prints both
	return errors.New(noise.ReplaceAllString(text, ""))
}
