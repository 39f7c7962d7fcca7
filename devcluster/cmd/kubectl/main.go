// Command kubectl is the kubectl of the Kubernetes release that devcluster
// runs. It exists because go install refuses k8s.io/kubernetes/cmd/kubectl,
// whose go.mod has replace directives, and because kubectl has no version if it
// is built without linker flags.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // authentication plugins that kubeconfigs may name
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/trimtab-dev/trimtab/devcluster/internal/release"
)

func main() {
	util.CheckErr(release.Apply())
	// Building the command tree already logs, so -v is evaluated before.
	_, err := logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	util.CheckErr(err)
	util.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()))
}
