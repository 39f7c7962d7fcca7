package devcluster_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs kubectl against a cluster and wants it to end with this exit code.
func (c *cluster) kubectl(t *testing.T, want int, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), kubectl(t), append([]string{"--kubeconfig", c.Kubeconfig, "--cache-dir", filepath.Join(t.TempDir(), "cache")}, args...)...)
	var out, complaints bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &complaints
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = nil
		if exit.ExitCode() != want {
			err = exit
		}
	} else if want != 0 {
		t.Errorf("kubectl %s: exit code 0, want %d", strings.Join(args, " "), want)
	}
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, &out, &complaints)
	}
	return out.String()
}

func TestKubectlVersion(t *testing.T) {
	t.Parallel()
	var got struct {
		ClientVersion, ServerVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal([]byte(shared(t).kubectl(t, 0, "", "version", "-o", "json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.ClientVersion.GitVersion != shared(t).Version || got.ServerVersion.GitVersion != shared(t).Version {
		t.Errorf("kubectl version = %+v, want %s for both", got, shared(t).Version)
	}
}

func TestKubectlExplain(t *testing.T) {
	t.Parallel()
	got := shared(t).kubectl(t, 0, "", "explain", "deployment.spec.replicas")
	for _, part := range []string{"GROUP:      apps", "FIELD: replicas <integer>", "Number of desired pods"} {
		if !strings.Contains(got, part) {
			t.Errorf("kubectl explain does not say %q:\n%s", part, got)
		}
	}
}

const webManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`

func TestKubectlApplyDiffWait(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	changed := strings.Replace(webManifest, "web:1", "web:2", 1)

	if got := shared(t).kubectl(t, 0, webManifest, "-n", ns, "apply", "-f", "-"); !strings.Contains(got, "deployment.apps/web created") {
		t.Errorf("kubectl apply said %q", got)
	}
	shared(t).kubectl(t, 0, "", "-n", ns, "wait", "--for=condition=Available", "deployment/web", "--timeout=2m")
	shared(t).kubectl(t, 0, "", "-n", ns, "rollout", "status", "deployment/web", "--timeout=2m")
	if got := shared(t).kubectl(t, 0, webManifest, "-n", ns, "apply", "--server-side", "--force-conflicts", "-f", "-"); !strings.Contains(got, "serverside-applied") {
		t.Errorf("kubectl apply --server-side said %q", got)
	}
	shared(t).kubectl(t, 0, webManifest, "-n", ns, "diff", "--server-side", "-f", "-")
	got := shared(t).kubectl(t, 1, changed, "-n", ns, "diff", "--server-side", "-f", "-")
	if !strings.Contains(got, "-      - image: web:1") || !strings.Contains(got, "+      - image: web:2") {
		t.Errorf("kubectl diff shows another change:\n%s", got)
	}
	shared(t).kubectl(t, 0, "", "-n", ns, "delete", "deployment/web", "--cascade=foreground", "--timeout=2m")
	if got := shared(t).kubectl(t, 0, "", "-n", ns, "get", "pods,replicasets", "-o", "name"); got != "" {
		t.Errorf("left after a foreground deletion: %s", got)
	}
}

func TestKubectlAuthCanI(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why  string
		as   []string
		want string
		exit int
	}{
		"the administrator may":    {why: "the kubeconfig is the administrator's", want: "yes"},
		"a ServiceAccount may not": {why: "RBAC is on", as: []string{"--as", "system:serviceaccount:default:default"}, want: "no", exit: 1},
		"a controller may": {
			why: "the roles of the controllers are set up as in any cluster",
			as:  []string{"--as", "system:serviceaccount:kube-system:deployment-controller"}, want: "yes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"auth", "can-i", "create", "replicasets.apps"}, tc.as...)
			if got := strings.TrimSpace(shared(t).kubectl(t, tc.exit, "", args...)); got != tc.want {
				t.Errorf("kubectl %s said %q, want %q; %s", strings.Join(args, " "), got, tc.want, tc.why)
			}
		})
	}
}
