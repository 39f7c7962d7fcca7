package fault_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"

	"github.com/grafana/grafana-operator/v5/api/v1beta1"
	"github.com/grafana/grafana-operator/v5/controllers"
	"github.com/grafana/grafana-operator/v5/controllers/resources"
)

// Fake is Grafana's HTTP API, as far as folders need it. The uid of a folder is that of its object.
type Fake struct {
	mu      sync.Mutex
	folders map[string]string // titles by uid
}

func (f *Fake) Resources() (all []fault.Resource) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, title := range f.folders {
		all = append(all, fault.Resource{Kind: "folder", ID: uid, Owner: uid, State: title, Ready: true})
	}
	return all
}

func (f *Fake) Clone() fault.ExternalAPI {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &Fake{folders: maps.Clone(f.folders)}
}

func (f *Fake) Handler() http.Handler {
	type folder struct {
		UID   string `json:"uid"`
		Title string `json:"title"`
	}
	mux := http.NewServeMux()
	handle := func(pattern string, do func(in folder) (int, any)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			var in folder
			_ = json.NewDecoder(r.Body).Decode(&in)
			if uid := r.PathValue("uid"); uid != "" {
				in.UID = uid
			}
			code, out := do(in)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(out)
		})
	}
	message := func(s string) any { return map[string]string{"message": s} }
	existing := func(then func(in folder) (int, any)) func(folder) (int, any) {
		return func(in folder) (int, any) {
			if _, ok := f.folders[in.UID]; !ok {
				return http.StatusNotFound, message("folder not found")
			}
			return then(in)
		}
	}
	handle("GET /api/login/ping", func(folder) (int, any) { return 200, message("Logged in") })
	handle("GET /api/frontend/settings", func(folder) (int, any) {
		return 200, map[string]any{"buildInfo": map[string]string{"version": "12.0.0"}}
	})
	handle("GET /api/folders", func(folder) (int, any) {
		all := []folder{}
		for uid, title := range f.folders {
			all = append(all, folder{uid, title})
		}
		return 200, all
	})
	handle("POST /api/folders", func(in folder) (int, any) {
		if _, ok := f.folders[in.UID]; ok {
			return http.StatusConflict, message("a folder with this uid exists")
		}
		f.folders[in.UID] = in.Title
		return 200, in
	})
	handle("GET /api/folders/{uid}", existing(func(in folder) (int, any) { return 200, folder{in.UID, f.folders[in.UID]} }))
	handle("PUT /api/folders/{uid}", existing(func(in folder) (int, any) { f.folders[in.UID] = in.Title; return 200, in }))
	handle("DELETE /api/folders/{uid}", existing(func(in folder) (int, any) { delete(f.folders, in.UID); return 200, message("Folder deleted") }))
	return mux
}

// wired is a client that also knows how to reach Grafana.
type wired struct {
	client.Client
	env *fault.Env
}

func (w wired) GrafanaTransport() http.RoundTripper { return fault.HTTP(w.env, (*Fake).Handler) }

const grafanaYAML = `
apiVersion: grafana.integreatly.org/v1beta1
kind: Grafana
metadata: {name: grafana-a, namespace: default, labels: {dashboards: grafana-a}}
spec: {config: {log: {mode: console}}}
`

const folderYAML = `
apiVersion: grafana.integreatly.org/v1beta1
kind: GrafanaFolder
metadata: {name: team, namespace: default}
spec: {instanceSelector: {matchLabels: {dashboards: grafana-a}}, title: Example Folder}
`

func TestFaults(t *testing.T) {
	grafana := &v1beta1.Grafana{ObjectMeta: metav1.ObjectMeta{Name: "grafana-a", Namespace: "default"}}
	folder := &v1beta1.GrafanaFolder{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: "default"}}
	titled := func(title string) func(context.Context, *fault.World) error {
		return func(_ context.Context, w *fault.World) error {
			all := w.ExternalAPI.Resources()
			if len(all) != 1 || all[0].State != title {
				return fmt.Errorf("Grafana has folders %v", all)
			}
			return nil
		}
	}
	labelled := cache.ByObject{Label: labels.SelectorFromSet(resources.GetCommonLabels())}
	fault.Run(t, fault.Scenario{
		Name: "grafana",
		Operator: fault.Operator{
			CRDs: os.DirFS("../../config/crd/bases"), RBAC: os.DirFS("../../config/rbac"),
			AddToScheme: func(s *runtime.Scheme) error {
				b := runtime.SchemeBuilder{clientgoscheme.AddToScheme, v1beta1.AddToScheme, routev1.AddToScheme, gwapiv1.Install}
				return b.AddToScheme(s)
			},
			Manager: ctrl.Options{
				Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
					&appsv1.Deployment{}: labelled, &corev1.Service{}: labelled, &corev1.ServiceAccount{}: labelled, &networkingv1.Ingress{}: labelled,
					&corev1.PersistentVolumeClaim{}: labelled, &corev1.ConfigMap{}: labelled, &corev1.Secret{}: labelled,
				}},
				Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}}},
			},
			SetUp: func(mgr ctrl.Manager, env *fault.Env) error {
				ctx, cancel := context.WithCancel(context.Background()) // main's, which ends with the manager
				if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { <-ctx.Done(); cancel(); return nil })); err != nil {
					return err
				}
				c := wired{mgr.GetClient(), env}
				if err := (&controllers.GrafanaReconciler{Client: c, Scheme: mgr.GetScheme()}).SetupWithManager(ctx, mgr); err != nil {
					return err
				}
				return (&controllers.GrafanaFolderReconciler{Client: c, Scheme: mgr.GetScheme(), Cfg: &controllers.Config{ResyncPeriod: 10 * time.Minute}}).SetupWithManager(mgr)
			},
		},
		ExternalAPI: func() fault.ExternalAPI { return &Fake{folders: map[string]string{}} },
		Actors:      actors.All(),
		Steps: []fault.Step{
			fault.CreateYAML(grafanaYAML).Becomes(grafana, "GrafanaReady"),
			fault.CreateYAML(folderYAML).Becomes(folder, "FolderSynchronized").Expecting(titled("Example Folder")),
			fault.Merge(folder, `{"spec":{"title":"Team Folder"}}`).Becomes(folder, "FolderSynchronized").Expecting(titled("Team Folder")),
			fault.Merge(grafana, `{"spec":{"config":{"log":{"mode":"file"}}}}`).Becomes(grafana, "GrafanaReady"),
			fault.Delete(folder).Gone(folder),
			fault.Delete(grafana).Gone(grafana),
		},
	})
}
