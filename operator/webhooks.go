package operator

import (
	"cmp"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/packaging"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/webhook"
)

// hook are the webhooks of one kind.
type hook struct {
	*webhook.Webhook

	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
}

// readWebhooks resolves the kinds of the webhooks.
func (d *design) readWebhooks() ([]hook, error) {
	var out []hook
	for n, w := range d.options.Webhooks {
		if w == nil {
			return nil, fmt.Errorf("number %d of Options.Webhooks is nil; leave it out", n)
		}
		gvk, err := w.GroupVersionKind(d.scheme)
		if err != nil {
			return nil, unregistered(err)
		}
		resource, err := d.resources.of(gvk)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(h hook) bool { return h.kind.GroupKind() == gvk.GroupKind() }) {
			return nil, fmt.Errorf("two of Options.Webhooks are of %s; give its Defaulter and its Validator to one webhook.New, for one version", gvk.Kind)
		}
		out = append(out, hook{w, gvk, resource})
	}
	return out, nil
}

// path returns where a webhook is served; do is "default" or "validate".
func (h hook) path(do string) string {
	return "/" + do + "/" + cmp.Or(h.kind.Group, "core") + "/" + h.kind.Version + "/" + h.resource.Resource
}

// name returns the name of a webhook in its configuration.
func (h hook) name(do string) string {
	return do + "." + h.resource.Resource + "." + cmp.Or(h.kind.Group, "core")
}

// webhookName is the name of the webhooks' Service, Secret and Role.
func (d *design) webhookName() string { return d.terms.Installation + "-webhook" }

// keepsCertificate reports whether the operator makes the certificate of its webhooks.
func (d *design) keepsCertificate(s settings) bool { return len(d.hooks) > 0 && s.webhookCertDir == "" }

// webhookNeeds are the permissions to have the webhook configurations trust the certificate.
func (d *design) webhookNeeds(s settings) []loop.Need {
	if !d.keepsCertificate(s) {
		return nil
	}
	var out []loop.Need
	for _, c := range d.webhookConfigurations("", s) {
		out = append(out, loop.Need{
			GroupVersionKind: c.GetObjectKind().GroupVersionKind(), Verbs: []string{"get", "watch", "patch"}, Names: []string{c.GetName()}, ClusterWide: true,
		})
	}
	return out
}

// webhookRules are the permissions on the Secret of the certificate. RBAC cannot restrict a create to a name.
func webhookRules(secret string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get", "watch", "update"}},
	}
}

// webhookService returns the Service of the webhooks of an operator in a namespace.
func (d *design) webhookService(namespace string) []client.Object {
	if len(d.hooks) == 0 {
		return nil
	}
	return []client.Object{&corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: d.webhookName(), Namespace: namespace, Labels: d.labels()},
		Spec: corev1.ServiceSpec{
			Selector: d.labels(),
			Ports:    []corev1.ServicePort{{Name: "webhook", Port: 443, TargetPort: intstr.FromString("webhook")}},
		},
	}}
}

// exposeWebhooks adds the port of the webhooks to the pod, and the certificate if another program issues it.
func (d *design) exposeWebhooks(pod *corev1.PodSpec, s settings) error {
	if len(d.hooks) == 0 {
		return nil
	}
	port, err := portOf("webhook-address", s.webhookAddress)
	if err != nil {
		return err
	}
	c := &pod.Containers[0]
	c.Ports = append(c.Ports, corev1.ContainerPort{Name: "webhook", ContainerPort: port})
	if s.webhookCertDir == "" {
		return nil
	}
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "webhook-cert", MountPath: s.webhookCertDir, ReadOnly: true})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "webhook-cert", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: d.webhookName()},
	}})
	return nil
}

// webhookConfigurations return the configurations of the webhooks of an operator in a namespace, without certificates.
func (d *design) webhookConfigurations(namespace string, s settings) []client.Object {
	meta := metav1.ObjectMeta{Name: d.terms.Installation, Labels: d.labels()}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{TypeMeta: kind("MutatingWebhookConfiguration"), ObjectMeta: meta}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{TypeMeta: kind("ValidatingWebhookConfiguration"), ObjectMeta: meta}
	for _, h := range d.hooks {
		if h.Defaulting(d.scheme) != nil {
			v := d.validatingWebhook(h, "default", namespace, s)
			mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
				Name: v.Name, ClientConfig: v.ClientConfig, Rules: v.Rules, FailurePolicy: v.FailurePolicy, MatchPolicy: v.MatchPolicy,
				NamespaceSelector: v.NamespaceSelector, SideEffects: v.SideEffects, TimeoutSeconds: v.TimeoutSeconds,
				AdmissionReviewVersions: v.AdmissionReviewVersions, MatchConditions: v.MatchConditions,
			})
		}
		if h.Validating(d.scheme) != nil {
			validating.Webhooks = append(validating.Webhooks, d.validatingWebhook(h, "validate", namespace, s))
		}
	}
	var out []client.Object
	if len(mutating.Webhooks) > 0 {
		out = append(out, mutating)
	}
	if len(validating.Webhooks) > 0 {
		out = append(out, validating)
	}
	return out
}

// validatingWebhook returns the webhook of h that is served under do. Its rule and its conditions leave out what the operator
// needs in order to finish deletions while no replica answers: updates of the status and of objects that are being
// deleted, and its own updates, which are of finalizers and annotations. The command uninstall makes such updates, too.
func (d *design) validatingWebhook(h hook, do, namespace string, s settings) admissionregistrationv1.ValidatingWebhook {
	scope := admissionregistrationv1.AllScopes
	if crd := d.resources.definition(h.kind.GroupKind()); crd != nil {
		scope = admissionregistrationv1.ScopeType(crd.Spec.Scope)
	}
	account := "system:serviceaccount:" + namespace + ":" + d.terms.Installation
	w := admissionregistrationv1.ValidatingWebhook{
		Name: h.name(do),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: namespace, Name: d.webhookName(), Path: new(h.path(do)), Port: new(int32(443)),
		}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{h.kind.Group}, APIVersions: []string{h.kind.Version}, Resources: []string{h.resource.Resource}, Scope: &scope,
			},
		}},
		FailurePolicy:           new(admissionregistrationv1.Fail),
		MatchPolicy:             new(admissionregistrationv1.Equivalent), // the API server converts other versions of the kind
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(5)),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "not-being-deleted", Expression: "!has(object.metadata.deletionTimestamp)"},
			{Name: "not-the-operator", Expression: `request.operation == "CREATE" || !(request.userInfo.username in ["` + account + `", "` + account + packaging.UninstallSuffix + `"])`},
		},
	}
	if namespaces := s.watchNamespaces; len(namespaces) > 0 {
		w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: slices.Clone(namespaces),
		}}}
	}
	return w
}
