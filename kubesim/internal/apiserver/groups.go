package apiserver

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/client-go/discovery"
	restclient "k8s.io/client-go/rest"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	admissionregistrationrest "k8s.io/kubernetes/pkg/registry/admissionregistration/rest"
	appsrest "k8s.io/kubernetes/pkg/registry/apps/rest"
	authenticationrest "k8s.io/kubernetes/pkg/registry/authentication/rest"
	authorizationrest "k8s.io/kubernetes/pkg/registry/authorization/rest"
	autoscalingrest "k8s.io/kubernetes/pkg/registry/autoscaling/rest"
	certificatesrest "k8s.io/kubernetes/pkg/registry/certificates/rest"
	coordinationrest "k8s.io/kubernetes/pkg/registry/coordination/rest"
	discoveryrest "k8s.io/kubernetes/pkg/registry/discovery/rest"
	eventsrest "k8s.io/kubernetes/pkg/registry/events/rest"
	networkingrest "k8s.io/kubernetes/pkg/registry/networking/rest"
	noderest "k8s.io/kubernetes/pkg/registry/node/rest"
	policyrest "k8s.io/kubernetes/pkg/registry/policy/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	storagerest "k8s.io/kubernetes/pkg/registry/storage/rest"
)

// providers are the built-in groups besides core. Admission policies are stored, but nobody evaluates
// them.
func providers(loop *restclient.Config) ([]provider, error) {
	learner, err := discovery.NewDiscoveryClientForConfig(loop)
	if err != nil {
		return nil, err
	}
	rules := byRoles().(access)
	return []provider{
		admissionregistrationrest.RESTStorageProvider{Authorizer: rules, DiscoveryClient: learner},
		appsrest.StorageProvider{},
		authenticationProvider{authenticationrest.RESTStorageProvider{Authenticator: tokens{}, APIAudiences: audiences()}},
		authorizationrest.RESTStorageProvider{Authorizer: unnoted{rules}, RuleResolver: rules.rbac},
		autoscalingrest.RESTStorageProvider{},
		batchProvider{},
		certificatesrest.RESTStorageProvider{Authorizer: rules},
		coordinationrest.RESTStorageProvider{},
		discoveryrest.StorageProvider{},
		eventsrest.RESTStorageProvider{TTL: eventTTL},
		networkingrest.RESTStorageProvider{},
		noderest.RESTStorageProvider{},
		policyrest.RESTStorageProvider{},
		rbacrest.RESTStorageProvider{Authorizer: rules},
		schedulingrest.RESTStorageProvider{},
		storagerest.RESTStorageProvider{},
	}, nil
}

// unnoted decides without noting that a right was needed: to ask about a right is not to use
// it.
type unnoted struct{ access }

// Authorize decides.
func (u unnoted) Authorize(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	return u.access.Authorize(withAudit(ctx, &Audit{}), asked)
}

// served are the versions that are on: the stable ones.
func served() *serverstorage.ResourceConfig {
	c := serverstorage.NewResourceConfig()
	c.EnableVersions(
		corev1.SchemeGroupVersion, admissionregistrationv1.SchemeGroupVersion, appsv1.SchemeGroupVersion,
		authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion, autoscalingv1.SchemeGroupVersion,
		autoscalingv2.SchemeGroupVersion, batchv1.SchemeGroupVersion, certificatesv1.SchemeGroupVersion,
		coordinationv1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, eventsv1.SchemeGroupVersion,
		networkingv1.SchemeGroupVersion, nodev1.SchemeGroupVersion, policyv1.SchemeGroupVersion,
		rbacv1.SchemeGroupVersion, schedulingv1.SchemeGroupVersion, storagev1.SchemeGroupVersion,
	)
	return c
}
