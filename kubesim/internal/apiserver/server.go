// Package apiserver runs the real API server's own code in the process: the registries of
// the built-in kinds and the handler of custom resources, over the storage of package store,
// reached by function calls instead of sockets.
package apiserver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/klog/v2"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Server serves the built-in kinds and some custom ones. It holds no objects: each request
// brings its cluster. One that was used in a bubble must not be used in another one at the same
// time, and in a later one only after [Server.LeaveBubble].
type Server struct {
	core    *core
	guarded http.Handler // all of it, behind access control
	infos   *request.RequestInfoFactory

	kinds    []kind          // served
	byPrefix map[string]kind // stored

	given map[string]metav1.ObjectMeta // the CRDs that it was made with, by key
	begin *store.Snapshot              // a cluster that has only these

	webhooks atomic.Pointer[Webhooks] // nil: none is called

	mu       sync.Mutex
	handlers map[[sha256.Size]byte]http.Handler // of custom resources, by their definition's print
}

// New returns a server for the given CRDs, which need not be defaulted or established.
func New(crds []*apiextensionsv1.CustomResourceDefinition) (*Server, error) {
	c, err := sharedCore()
	if err != nil {
		return nil, err
	}
	s := newServer(c)
	s.byPrefix, s.kinds = customKinds(crds)
	maps.Copy(s.byPrefix, c.kinds)
	s.kinds = slices.AppendSeq(s.kinds, maps.Values(c.kinds))
	return s, s.install(crds)
}

// Another returns a server for the same CRDs, which costs nothing. Both may be used at the same time.
func (s *Server) Another() *Server {
	o := newServer(s.core)
	o.kinds, o.byPrefix, o.given, o.begin = s.kinds, s.byPrefix, s.given, s.begin
	return o
}

func newServer(c *core) *Server {
	s := &Server{core: c, handlers: map[[sha256.Size]byte]http.Handler{}, infos: &request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}}
	s.guarded = authenticated(guarded(http.HandlerFunc(s.dispatch), byRoles()))
	return s
}

// Warm computes what requests need of all clusters that begin as this one.
func Warm(db *store.DB) {
	hooksOf.Of(db)
	policyOf.Of(db)
	pluginObjects.Of(db)
	accountsOf.Of(db)
	phases.Of(db)
}

// LeaveBubble lets a server that was used in one bubble be used in another. No request may
// be under way.
func (s *Server) LeaveBubble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.handlers {
		if err := leaveBubble(h); err != nil {
			return err
		}
	}
	return nil
}

// Client says on whose behalf requests come and what becomes of them.
type Client struct {
	// DB is the cluster. Required.
	DB *store.DB
	// User is who asks. Nil means an administrator.
	User user.Info
	// Gate holds back watch events. Nil means that they come at once.
	Gate *store.Gate
	// Audit collects the rights that requests need. Nil collects none.
	Audit *Audit
	// Warn adds the server's warnings to answers.
	Warn bool
}

func (s *Server) serve(c Client, w http.ResponseWriter, r *http.Request) {
	h := s.guarded
	if c.Warn {
		h = filters.WithWarningRecorder(h)
	}
	h.ServeHTTP(w, r)
}

// dispatch answers a request that is allowed.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	info, _ := request.RequestInfoFrom(r.Context())
	db := store.From(r.Context())
	concerned := s.concernsDefinitions(db, info)
	s.answer(db, info, w, r)
	if concerned {
		if err := s.tend(r, db); err != nil {
			panic(fmt.Sprintf("kubesim: the controllers of CRDs: %v", err)) // nothing a client does may lead here
		}
	}
}

// answer routes a request: what the core does not serve is custom.
func (s *Server) answer(db *store.DB, info *request.RequestInfo, w http.ResponseWriter, r *http.Request) {
	switch {
	case introduce(w, r), s.discover(db, w, r), s.serveOpenAPI(db, w, r):
	case !info.IsResourceRequest || s.core.serves[schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}]:
		s.core.handler.ServeHTTP(w, r)
	default:
		h, err := s.custom(db, schema.GroupResource{Group: info.APIGroup, Resource: info.Resource})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h.ServeHTTP(w, r)
	}
}

// prepare gives a request what the real server's filters put into its context.
func (s *Server) prepare(c Client, r *http.Request) (*http.Request, *request.RequestInfo, error) {
	info, err := s.infos.NewRequestInfo(r)
	if err != nil {
		return nil, nil, err
	}
	who := c.User
	if who == nil {
		who = &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	}
	ctx := store.With(r.Context(), c.DB)
	if c.Gate != nil {
		ctx = store.WithGate(ctx, c.Gate)
	}
	if c.Audit != nil {
		ctx = withAudit(ctx, c.Audit)
	}
	if w := s.webhooks.Load(); w != nil {
		ctx = context.WithValue(ctx, webhooksKey{}, w)
	}
	ctx = klog.NewContext(ctx, logr.Discard()) // else the server would log to its client's logger
	ctx = request.WithRequestInfo(ctx, info)
	ctx = request.WithUser(ctx, who)
	ctx = audit.WithAuditContext(ctx)
	if !c.Warn {
		ctx = warning.WithWarningRecorder(ctx, silent{})
	}
	ctx = request.WithReceivedTimestamp(ctx, time.Now())
	return r.Clone(ctx), info, nil
}

// silent drops warnings.
type silent struct{}

func (silent) AddWarning(string, string) {}
