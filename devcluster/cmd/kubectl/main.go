// Command kubectl is the kubectl of the Kubernetes release that devcluster
// runs. It exists because go install refuses k8s.io/kubernetes/cmd/kubectl,
// whose go.mod has replace lines, and a build without linker flags has no
// version.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that kubeconfigs may name
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/trimtab-dev/trimtab/devcluster/internal/release"
)

func main() {
	util.CheckErr(release.Apply())
	// Building the command tree logs already, so -v is looked up beforehand.
	_, err := logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	util.CheckErr(err)
	util.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()))
}
