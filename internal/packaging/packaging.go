// Package packaging makes the files that install an operator, from the objects of its manifests: one file for kubectl, a
// base for kustomize, a Helm chart, and a bundle for the Operator Lifecycle Manager.
//
// [Model.Files] returns them all. Each is made from the objects, and none from the text of another one. The package knows
// neither clusters nor images.
package packaging

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Model is what is known about an operator and its installation.
type Model struct {
	// Name is the operator's name, and Installation that of its objects, often the same.
	Name, Installation string
	// Version is a semantic version for the chart and the bundle.
	Version string
	// Image is the operator's image, and Namespace where it runs unless the chart is used.
	Image, Namespace string
	// Objects install the operator in Namespace, with Image.
	Objects Objects
	// Chart install it in [ReleaseNamespace], and Restricted do so for the objects in [EachNamespace] only. The operator has to
	// reconcile all namespaces, or those that were chosen before, if Restricted is nil.
	Chart      Objects
	Restricted *Objects
	// Kinds are those of which objects may hold up the uninstallation.
	Kinds []Kind
	// Flags are those of the manager, and Uninstall is the command that decides whether it may go.
	Flags     []string
	Uninstall string
	// Dashboard is for Grafana, Alerts are rules for Prometheus, and AlertGroups are the same for the Prometheus Operator.
	Dashboard, Alerts []byte
	AlertGroups       []any
}

// Names that stand in [Model.Chart] and [Model.Restricted] for what is only known when the chart is installed.
const (
	ReleaseNamespace = "trimtab-release-namespace"
	EachNamespace    = "trimtab-each-namespace"
)

// Objects are what installs an operator, in the order in which it is applied.
type Objects struct {
	CRDs       []client.Object
	Namespace  []client.Object // none if every cluster has it
	Access     []client.Object // the service account, its roles and their bindings
	Policies   []client.Object // of admission
	Services   []client.Object
	Deployment *appsv1.Deployment
	Webhooks   []client.Object // their configurations
}

// All returns the objects in their order.
func (o Objects) All() []client.Object {
	return slices.Concat(o.CRDs, o.Namespace, o.Access, o.Policies, o.Services, []client.Object{o.Deployment}, o.Webhooks)
}

// Kind is a kind of which objects may hold up the uninstallation.
type Kind struct {
	schema.GroupVersionKind

	// Resource is its name in URLs.
	Resource string
}

// version is what Helm and the Operator Lifecycle Manager accept.
var version = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// IsVersion reports whether a chart and a bundle can have a version.
func IsVersion(text string) bool { return version.MatchString(text) }

// Check returns what is wrong with the model.
func (m Model) Check() error {
	var problems []error
	if !IsVersion(m.Version) {
		problems = append(problems, fmt.Errorf("%q is no semantic version, such as 1.2.3; set --version", m.Version))
	}
	if m.Image == "" {
		problems = append(problems, errors.New("the image has no name; set --image"))
	}
	return errors.Join(problems...)
}

// Files returns the files by their slash-separated paths.
func (m Model) Files() (map[string][]byte, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	files := map[string][]byte{"monitoring/dashboard.json": m.Dashboard, "monitoring/alerts.yaml": m.Alerts}
	for _, add := range []func(map[string][]byte) error{m.install, m.kustomize, m.chart, m.bundle} {
		if err := add(files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// install adds the file for kubectl apply.
func (m Model) install(files map[string][]byte) error {
	var err error
	files["install.yaml"], err = YAML(slices.Concat(m.Objects.All(), m.surroundings(m.Objects))...)
	return err
}

// YAML returns objects as one stream, without their empty status.
func YAML(objects ...client.Object) ([]byte, error) {
	var out bytes.Buffer
	for i, o := range objects {
		content, err := fields(o)
		if err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("print %s: %w", o.GetName(), err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

// fields returns what is printed of an object.
func fields(o client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("print %s: %w", o.GetName(), err)
	}
	content = runtime.DeepCopyJSON(content) // that of an unstructured object is the object
	unstructured.RemoveNestedField(content, "status")
	if spec, ok := content["spec"].(map[string]any); ok && len(spec) == 0 {
		unstructured.RemoveNestedField(content, "spec")
	}
	return content, nil
}
