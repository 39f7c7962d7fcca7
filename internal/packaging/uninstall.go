package packaging

import (
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UninstallSuffix is at the end of the names of the hook's objects.
const UninstallSuffix = "-uninstall"

// hook returns the metadata of an object that exists while Helm uninstalls, in the order of weights. A Job that failed stays,
// so that its log can be read.
func (c *chart) hook(name, namespace string, weight int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/name": c.Installation + UninstallSuffix},
		Annotations: map[string]string{
			"helm.sh/hook": "pre-delete", "helm.sh/hook-weight": strconv.Itoa(weight), "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
			"helm.sh/hook-output-log-policy": "hook-failed",
		},
	}
}

// everywhere is the condition under which objects of all namespaces count: without CRDs, none of them survives.
const everywhere = "or (not $.Values.namespaces) (and $.Values.crds.enabled (not $.Values.crds.keep))"

// uninstall adds the hook that decides about objects which only the operator can delete.
func (c *chart) uninstall() error {
	if len(c.Kinds) == 0 {
		return nil
	}
	documents := []document{{text: `{{- if and (eq $.Values.uninstall.policy "orphan") $.Values.crds.enabled (not $.Values.crds.keep) }}
{{- fail "uninstall.policy=orphan leaves objects, and crds.keep=false deletes all of them; choose one of the two" }}
{{- end }}
`}}
	for _, o := range c.hookAccess() {
		text, err := c.object(o.object)
		if err != nil {
			return err
		}
		documents = append(documents, document{o.when, text})
	}
	job, err := c.hookJob()
	if err != nil {
		return err
	}
	c.write("uninstall.yaml", append(documents, document{text: job})...)
	return nil
}

type conditional struct {
	when   string
	object client.Object
}

// hookAccess returns the service account of the hook, and what it may do, which depends on the policy.
func (c *chart) hookAccess() []conditional {
	name := c.Installation + UninstallSuffix
	rbac := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: ReleaseNamespace}}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	out := []conditional{{"", &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: c.hook(name, ReleaseNamespace, 1)}}}
	for _, policy := range []struct {
		name  string
		verbs []string
	}{{"refuse", []string{"list"}}, {"cascade", []string{"list", "delete"}}, {"orphan", []string{"list", "get", "patch"}}} {
		var rules []rbacv1.PolicyRule
		for _, k := range c.Kinds {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{k.Group}, Resources: []string{k.Resource}, Verbs: policy.verbs})
		}
		out = append(out, conditional{"eq $.Values.uninstall.policy " + strconv.Quote(policy.name), &rbacv1.ClusterRole{TypeMeta: rbac("ClusterRole"), ObjectMeta: c.hook(name, "", 1), Rules: rules}})
	}
	all := "true"
	if c.Restricted != nil {
		all = everywhere
		out = append(out, conditional{"not (" + everywhere + ")", &rbacv1.RoleBinding{TypeMeta: rbac("RoleBinding"), ObjectMeta: c.hook(name, EachNamespace, 2), RoleRef: ref("ClusterRole"), Subjects: subjects}})
	}
	const orphan = `eq $.Values.uninstall.policy "orphan"`
	return append(out,
		conditional{all, &rbacv1.ClusterRoleBinding{TypeMeta: rbac("ClusterRoleBinding"), ObjectMeta: c.hook(name, "", 2), RoleRef: ref("ClusterRole"), Subjects: subjects}},
		conditional{orphan, &rbacv1.Role{TypeMeta: rbac("Role"), ObjectMeta: c.hook(name+"-stop", ReleaseNamespace, 1), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, ResourceNames: []string{c.Installation}, Verbs: []string{"get", "update"}},
		}}},
		conditional{orphan, &rbacv1.RoleBinding{TypeMeta: rbac("RoleBinding"), ObjectMeta: c.hook(name+"-stop", ReleaseNamespace, 2), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name + "-stop"}, Subjects: subjects}},
	)
}

// hookJob returns the Job of the hook: the pod of the operator, with another command.
func (c *chart) hookJob() (string, error) {
	name := c.Installation + UninstallSuffix
	pod := c.Chart.Deployment.Spec.Template.Spec.DeepCopy()
	main := &pod.Containers[0]
	main.Name, main.Ports, main.LivenessProbe, main.ReadinessProbe = c.Uninstall, nil, nil, nil
	main.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	pod.ServiceAccountName, pod.RestartPolicy, pod.TerminationGracePeriodSeconds = name, corev1.RestartPolicyNever, nil
	meta := c.hook(name, ReleaseNamespace, 3)
	content, err := fields(&batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"}, ObjectMeta: meta,
		Spec: batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: *pod}},
	})
	if err != nil {
		return "", err
	}
	spec, _, err := unstructured.NestedMap(content, "spec", "template", "spec")
	if err != nil {
		return "", err
	}
	containers, _ := spec["containers"].([]any)
	container, _ := containers[0].(map[string]any)
	container["args"] = c.hookArguments()
	c.place(spec, container)
	if err := unstructured.SetNestedMap(content, spec, "spec", "template", "spec"); err != nil {
		return "", err
	}
	return c.text(content)
}

// hookArguments returns what stands for the arguments of the hook: the command, and the flags of the manager.
func (c *chart) hookArguments() string {
	list := []string{"list", strconv.Quote(c.Uninstall), `(printf "--policy=%s" $.Values.uninstall.policy) (printf "--timeout=%s" $.Values.uninstall.timeout) "--"`}
	for _, flag := range c.Flags {
		list = append(list, strconv.Quote(flag))
	}
	chosen := "(concat (" + strings.Join(list, " ") + ") $.Values.args)"
	if c.Restricted != nil {
		chosen = "(concat " + chosen + " (" + everywhere + ` | ternary (list) (list (printf "--watch-namespaces=%s" (join "," $.Values.namespaces)))))`
	}
	return c.token("toJson " + chosen)
}
