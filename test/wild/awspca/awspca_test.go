package awspca

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/acmpca"
	"github.com/cert-manager/aws-privateca-issuer/pkg/api/v1beta1"
	"github.com/cert-manager/aws-privateca-issuer/pkg/aws"
	"github.com/cert-manager/aws-privateca-issuer/pkg/controllers"
	cmutil "github.com/cert-manager/cert-manager/pkg/api/util"
	cm "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/wild"
)

// envClient is the operator's client, which also knows its process.
type envClient struct {
	client.Client
	env *fault.Env
}

// provisioner is the operator's own, whose client of AWS reaches the fake. Nothing that is exported sets it.
func provisioner(ctx context.Context, c client.Client, name types.NamespacedName, spec *v1beta1.AWSPCAIssuerSpec) (aws.GenericProvisioner, error) {
	p, err := aws.GetProvisioner(ctx, c, name, spec)
	if err != nil {
		return nil, err
	}
	config, err := aws.GetConfig(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	config.HTTPClient = &http.Client{Transport: fault.HTTP(c.(envClient).env, (*authorities).Handler)}
	field := reflect.ValueOf(p).Elem().FieldByName("pcaClient")
	reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem().Set(reflect.ValueOf(acmpca.NewFromConfig(config)))
	return p, nil
}

func setUp(mgr ctrl.Manager, env *fault.Env) error {
	aws.ClearProvisioners()
	c, log := envClient{mgr.GetClient(), env}, mgr.GetLogger()
	recorder := mgr.GetEventRecorderFor("awspcaissuer-controller") //nolint:staticcheck // as its main does
	generic := &controllers.GenericIssuerReconciler{Client: c, Log: log, Scheme: mgr.GetScheme(), Recorder: recorder}
	return errors.Join(
		(&controllers.AWSPCAIssuerReconciler{Client: c, Log: log, Scheme: mgr.GetScheme(), GenericController: generic}).SetupWithManager(mgr),
		(&controllers.AWSPCAClusterIssuerReconciler{Client: c, Log: log, Scheme: mgr.GetScheme(), GenericController: generic}).SetupWithManager(mgr),
		(&controllers.CertificateRequestReconciler{
			Client: c, Log: log, Scheme: mgr.GetScheme(), Recorder: recorder, Clock: clock.RealClock{}, CheckApprovedCondition: true,
		}).SetupWithManager(mgr),
	)
}

// approve is cert-manager's approver.
func approve(ctx context.Context, w *fault.World) error {
	var all cm.CertificateRequestList
	if err := w.Client.List(ctx, &all); err != nil {
		return err
	}
	for _, cr := range all.Items {
		if cmutil.CertificateRequestIsApproved(&cr) {
			continue
		}
		cmutil.SetCertificateRequestCondition(&cr, cm.CertificateRequestConditionApproved, cmmeta.ConditionTrue, "Approved", "approved")
		if err := w.Client.Status().Update(ctx, &cr); err != nil {
			return err
		}
	}
	return nil
}

func TestAWSPrivateCAIssuer(t *testing.T) {
	controllers.GetProvisioner = provisioner
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "aws"}, StringData: map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}}
	issuer := &v1beta1.AWSPCAIssuer{ObjectMeta: metav1.ObjectMeta{Name: "ca"}, Spec: v1beta1.AWSPCAIssuerSpec{
		Arn: "arn:aws:acm-pca:eu-west-1:1:certificate-authority/1", Region: "eu-west-1",
		SecretRef: v1beta1.AWSCredentialsSecretReference{SecretReference: corev1.SecretReference{Namespace: "default", Name: "aws"}},
	}}
	request := func(name string) *cm.CertificateRequest {
		return &cm.CertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: cm.CertificateRequestSpec{
			Request:   []byte(encode(name)),
			IssuerRef: cmmeta.IssuerReference{Group: "awspca.cert-manager.io", Kind: "AWSPCAIssuer", Name: "ca"},
		}}
	}
	web, api := request("web"), request("api")
	wild.PlayWith(t, fault.Scenario{
		Name: "certificates",
		Operator: fault.Operator{
			CRDs: fault.Files(
				fault.Module(t, "github.com/cert-manager/aws-privateca-issuer", "config/crd/bases"),
				fault.Module(t, "github.com/cert-manager/cert-manager", "deploy/crds"),
			),
			RBAC: fault.Module(t, "github.com/cert-manager/aws-privateca-issuer", "config/rbac"),
			AddToScheme: func(s *runtime.Scheme) error {
				return errors.Join(v1beta1.AddToScheme(s), cm.AddToScheme(s))
			},
			SetUp: setUp,
		},
		ExternalAPI: func() fault.ExternalAPI { return &authorities{} },
		Actors:      []fault.Actor{{Name: "approver", Act: approve}},
		Steps: []fault.Step{
			fault.Create(secret),
			fault.Create(issuer).Becomes(issuer, "Ready"),
			fault.Create(web).Becomes(web, "Ready"),
			fault.Merge(issuer, `{"spec":{"arn":"arn:aws:acm-pca:eu-west-1:1:certificate-authority/2"}}`).Becomes(issuer, "Ready"),
			fault.Create(api).Becomes(api, "Ready"),
			fault.Delete(issuer).Gone(issuer),
		},
	}, 290, []fault.Option{fault.Workers(1)}, // it keeps clients in a package variable
		wild.Bug{
			Invariant: fault.I1, Says: "is missing, without the disturbance it is aws-privateca-issuer/certificate-arn",
			Why: "a request whose status says Ready is never looked at again",
		},
		wild.Bug{
			Invariant: fault.I1, Says: `message of CertificateRequest default/web is "somebody says so", "certificate issued" without the disturbance, and one more difference`,
			Why: "nor is its message, which does no harm",
		},
		wild.Bug{
			Invariant: fault.I1, Says: `message of CertificateRequest default/web is "somebody says so", "certificate issued" without the disturbance, and 2 more differences`,
			Why: "Ready=False beside a certificate is never corrected",
		},
		wild.Bug{Invariant: fault.I5, Says: "first: update certificaterequests.cert-manager.io/status default/", Why: "each retry writes status and event although nothing has changed"},
	)
}
