// Package release sets the version that the linked Kubernetes code reports.
package release

import (
	"fmt"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// Version is the Kubernetes release in go.mod.
const Version = "v1.37.1"

// Release builds of Kubernetes set these three variables with the linker's -X
// flag. Their default is v0.0.0-master+$Format:%H$, which neither kubectl nor Helm
// can parse. go install and go run cannot set linker flags, and
// version.SetDynamicVersion accepts only the linked major and minor version, so
// the variables are accessed by name. If upstream renames them, linking fails.

//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string

//go:linkname gitMajor k8s.io/component-base/version.gitMajor
var gitMajor string

//go:linkname gitMinor k8s.io/component-base/version.gitMinor
var gitMinor string

// Apply makes all Kubernetes components in this process report Version. Call it
// before any of them starts.
func Apply() error {
	gitVersion, gitMajor, gitMinor = Version, "1", "37"
	if err := version.SetDynamicVersion(Version); err != nil {
		return fmt.Errorf("set the Kubernetes version: %w", err)
	}
	return nil
}
