package operator

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/packaging"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// ManifestOptions say how an operator is installed. The zero value is valid.
type ManifestOptions struct {
	// Namespace is where the operator runs. Empty means a namespace with the operator's name.
	// The manifests include the namespace unless every cluster has it.
	Namespace string
	// Image is the operator's image. Empty means the operator's name with the tag latest.
	Image string
	// Args are flags of the manager, including the operator's own. Ports and grace periods in
	// the manifests depend on them.
	Args []string
	// FromSecret maps the names of flags, without dashes, to "secret/key" in Namespace. The
	// flags must be of type [Secret] or [File]. Each key is mounted as a file, so that a change
	// of the Secret takes effect without a restart.
	FromSecret map[string]string
}

// Manifests returns the objects that install the operator, in the order in which to apply them:
// CRDs, namespace, service account, roles and bindings, Service and Deployment, webhook configurations. It needs no cluster. The roles
// contain only the permissions that the controllers need.
func Manifests(o Options, m ManifestOptions) ([]client.Object, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return manifests(o, m, partAll, func(string) {})
}

// part is a part of the manifests.
type part string

const (
	partAll  part = "all"
	partCRDs part = "crds"
	partRBAC part = "rbac"
)

// warnOfSecrets warns of credentials in the arguments of the pod, where everybody who can read pods
// can see them.
func warnOfSecrets(args []string, f *pflag.FlagSet, warn func(string)) {
	for _, arg := range args {
		if safe := plain.Safe(arg); safe != arg {
			warn(fmt.Sprintf("%q looks like it contains credentials, and everybody who can read pods can see it; "+
				"use --from-secret, which takes these flags from a Secret: %s", safe, strings.Join(secretFlags(f), ", ")))
		}
	}
}

// manifests returns the wanted part of the manifests. It calls warn for what an author may have
// forgotten.
func manifests(o Options, m ManifestOptions, p part, warn func(string)) ([]client.Object, error) {
	i, err := o.installation(&m, p, warn)
	if err != nil {
		return nil, err
	}
	switch p {
	case partAll:
		objects, err := i.objects(m)
		return objects.All(), err
	case partCRDs:
		return i.design.definitions(), nil
	case partRBAC:
		access, err := i.design.rbac(m, i.settings)
		return slices.Concat(namespace(m), access, i.design.recordPolicy()), err
	}
	return nil, fmt.Errorf("unknown manifests %q; use crds, rbac or all", p)
}

// installation is an operator with the settings with which it is installed.
type installation struct {
	design   *design
	settings settings
	mounted  []mount
	flags    *pflag.FlagSet
}

// installation reads the flags of the manager in m, and then the operator. It completes m. The part says what is to be warned of.
func (o Options) installation(m *ManifestOptions, p part, warn func(string)) (installation, error) {
	m.Image = cmp.Or(m.Image, o.Name+":latest")
	var i installation
	var err error
	if i.flags, err = i.settings.parse(o, m.Args); err != nil {
		return i, err
	}
	m.Namespace = cmp.Or(m.Namespace, i.settings.installation, o.Name)
	if i.mounted, err = mounts(m.FromSecret, i.flags); err != nil {
		return i, err
	}
	warnOfSecrets(m.Args, i.flags, warn)
	fromSecrets, err := setMounts(o.Name, i.mounted, i.flags)
	if err != nil {
		return i, err
	}
	m.Args = append(slices.Clone(m.Args), fromSecrets...)
	if i.design, err = o.read(); err != nil {
		return i, err
	}
	if err := i.design.govern(i.settings); err != nil {
		return i, err
	}
	if p != partRBAC {
		err = i.design.missing(warn)
	}
	return i, err
}

// objects returns what installs the operator.
func (i installation) objects(m ManifestOptions) (packaging.Objects, error) {
	d, s := i.design, i.settings
	access, err := d.rbac(m, s)
	if err != nil {
		return packaging.Objects{}, err
	}
	deployment, err := d.deployment(m, s)
	if err != nil {
		return packaging.Objects{}, err
	}
	if err := d.explain(deployment); err != nil {
		return packaging.Objects{}, err
	}
	mountAll(d.options.Name, i.mounted, &deployment.Spec.Template.Spec)
	if err := d.exposeWebhooks(&deployment.Spec.Template.Spec, s); err != nil {
		return packaging.Objects{}, err
	}
	return packaging.Objects{
		CRDs: d.definitions(), Namespace: namespace(m), Access: access, Policies: d.recordPolicy(), Services: d.webhookService(m.Namespace),
		Deployment: deployment, Webhooks: d.webhookConfigurations(m.Namespace, s),
	}, nil
}

func (d *design) definitions() []client.Object {
	var out []client.Object
	for _, crd := range d.resources.crds {
		out = append(out, crd)
	}
	return out
}

// missing warns of kinds without a known definition. This is not an error, because a controller may
// reconcile a kind that something else installs.
func (d *design) missing(warn func(string)) error {
	kubernetes, err := Options{}.scheme()
	if err != nil {
		return err
	}
	for _, kind := range d.kinds {
		builtIn := kubernetes.Recognizes(kind) || kind.Group == apiextensionsv1.GroupName
		if !builtIn && !d.resources.defines(kind.GroupKind()) {
			warn(fmt.Sprintf("operator.Options.CRDs contains no CRD for %s; the cluster must have it already", kind.GroupKind()))
		}
	}
	return nil
}

func namespace(m ManifestOptions) []client.Object {
	if m.Namespace == metav1.NamespaceDefault || strings.HasPrefix(m.Namespace, "kube-") {
		return nil
	}
	return []client.Object{&corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: m.Namespace},
	}}
}

func (d *design) labels() map[string]string {
	labels := map[string]string{"app.kubernetes.io/name": d.options.Name}
	if d.terms.Installation != d.options.Name {
		labels["app.kubernetes.io/instance"] = d.terms.Installation
	}
	return labels
}

// rbac returns the service account, its roles and their bindings.
func (d *design) rbac(m ManifestOptions, s settings) ([]client.Object, error) {
	needed, err := permissions(slices.Concat(d.needs, d.webhookNeeds(s)), d.resources)
	if err != nil {
		return nil, err
	}
	name := d.terms.Installation
	meta := func(name, namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: d.labels()}
	}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: m.Namespace}}
	role := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	grant := func(namespace string) client.Object {
		if namespace == metav1.NamespaceAll {
			return &rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta(name, ""), RoleRef: role("ClusterRole", name), Subjects: subjects}
		}
		return &rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: meta(name, namespace), RoleRef: role("ClusterRole", name), Subjects: subjects}
	}
	election := name + "-leader-election"
	clusterRole := func(name string, needed []permission) client.Object {
		return &rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: meta(name, ""), Rules: rules(needed)}
	}
	var wide []permission
	if len(s.watchNamespaces) > 0 {
		needed, wide = apart(needed)
	}
	objects := []client.Object{
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: meta(name, m.Namespace)},
		clusterRole(name, needed),
	}
	if len(wide) > 0 {
		cluster := name + "-cluster"
		objects = append(objects, clusterRole(cluster, wide),
			&rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta(cluster, ""), RoleRef: role("ClusterRole", cluster), Subjects: subjects})
	}
	for _, namespace := range s.worksIn() {
		objects = append(objects, grant(namespace))
	}
	if d.keepsCertificate(s) {
		hooks := d.webhookName()
		objects = append(objects,
			&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: meta(hooks, m.Namespace), Rules: webhookRules(hooks)},
			&rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: meta(hooks, m.Namespace), RoleRef: role("Role", hooks), Subjects: subjects})
	}
	return append(objects,
		&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: meta(election, m.Namespace), Rules: electionRules(name)},
		&rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: meta(election, m.Namespace), RoleRef: role("Role", election), Subjects: subjects},
	), nil
}

// AnnotationFinalizers is on the Deployment that [Manifests] returns. It says for each kind which finalizer its objects
// get, and why, one per line. Objects of other kinds get none.
const AnnotationFinalizers = "trimtab.dev/finalizers"

// explain has a Deployment say which finalizers the operator writes, so that a change of that shows before an upgrade.
func (d *design) explain(deployment *appsv1.Deployment) error {
	var lines []string
	for i := range d.controllers {
		name, why, _, err := d.finalizer(i)
		if err != nil {
			return err
		}
		if name != "" {
			lines = append(lines, fmt.Sprintf("%s: %s, because %s", d.kinds[i].Kind, name, why))
		}
	}
	if len(lines) > 0 {
		deployment.Annotations = map[string]string{AnnotationFinalizers: strings.Join(lines, "\n")}
	}
	return nil
}

// finalizer returns which finalizer controller number i writes, and why; both are empty if it writes none. It also returns the
// resource of the controller's kind.
func (d *design) finalizer(i int) (name, why, resource string, err error) {
	f, ok := d.controllers[i].(interface {
		Finalizer(gvk schema.GroupVersionKind, plural string) (name, why string)
	})
	if !ok {
		return "", "", "", nil
	}
	of, err := d.resources.of(d.kinds[i])
	if err != nil {
		return "", "", "", err
	}
	name, why = f.Finalizer(d.kinds[i], of.Resource)
	return name, why, of.Resource, nil
}

// electionRules are the permissions for leader election. RBAC cannot restrict a create to a name.
func electionRules(lease string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{lease}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

func (d *design) deployment(m ManifestOptions, s settings) (*appsv1.Deployment, error) {
	container := corev1.Container{
		Name:  "manager",
		Image: m.Image,
		Args:  append([]string{managerCommand}, m.Args...),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("10m"),
			corev1.ResourceMemory: resource.MustParse("64Mi"),
		}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	if err := addPorts(&container, s); err != nil {
		return nil, err
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: d.terms.Installation, Namespace: m.Namespace, Labels: d.labels()},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: d.labels()},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: d.labels()},
				Spec: corev1.PodSpec{
					ServiceAccountName: d.terms.Installation,
					// A little longer than the manager's own timeout, so that it can always finish.
					TerminationGracePeriodSeconds: new(int64((s.shutdownTimeout + 10*time.Second).Seconds())),
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot:   new(true),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{container},
				},
			},
		},
	}, nil
}

// addPorts sets the container's ports and probes to what s serves.
func addPorts(c *corev1.Container, s settings) error {
	if s.metricsAddress != off {
		port, err := portOf("metrics-address", s.metricsAddress)
		if err != nil {
			return err
		}
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: "metrics", ContainerPort: port})
	}
	if s.healthAddress == off {
		return nil
	}
	port, err := portOf("health-address", s.healthAddress)
	if err != nil {
		return err
	}
	c.Ports = append(c.Ports, corev1.ContainerPort{Name: "health", ContainerPort: port})
	probe := func(path string, every int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}},
			PeriodSeconds: every,
		}
	}
	c.LivenessProbe, c.ReadinessProbe = probe("/livez", 20), probe("/readyz", 10)
	return nil
}

func portOf(flag, address string) (int32, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, fmt.Errorf("--%s: %w", flag, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("--%s %s: manifests need a numeric port", flag, address)
	}
	return int32(port), nil
}

// printYAML writes objects as one YAML stream, without their empty status.
func printYAML(w io.Writer, objects []client.Object) error {
	text, err := packaging.YAML(objects...)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
