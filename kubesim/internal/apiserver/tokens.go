package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	authenticationrest "k8s.io/kubernetes/pkg/registry/authentication/rest"
	"k8s.io/kubernetes/pkg/registry/authentication/tokenreview"
	account "k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

const issuer = "https://kubernetes.default.svc.cluster.local"

func audiences() authenticator.Audiences { return authenticator.Audiences{issuer} }

// tokens makes and knows the tokens of service accounts. They are JWTs as a real server's, but
// signed with a key that is no secret, so that equal runs make equal tokens.
type tokens struct{}

var (
	_ account.TokenGenerator = tokens{}
	_ authenticator.Request  = tokens{}
)

func key() []byte { return []byte("kubesim") }

// GenerateToken makes a token of claims.
func (tokens) GenerateToken(ctx context.Context, public *jwt.Claims, private any) (string, error) {
	public.ID, public.Issuer = store.UID("token", store.From(ctx).Serial()), issuer
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key()}, (&jose.SignerOptions{}).WithHeader("kid", "kubesim"))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(private).Claims(public).CompactSerialize()
}

// named is an object in a token. go-jose reads fields by their exact names.
type named struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// claims are what matters of a token.
type claims struct {
	Audience   []string `json:"aud"`
	Expiry     int64    `json:"exp"`
	ID         string   `json:"jti"`
	Kubernetes struct {
		Namespace string `json:"namespace"`
		Account   named  `json:"serviceaccount"`
		Pod       *named `json:"pod"`
	} `json:"kubernetes.io"`
}

//arch:state it names a computation; its results are kept in each cluster
var accountsOf = store.NewMemo(func(stored []store.Stored) map[string]string {
	uids := map[string]string{}
	for _, s := range stored {
		switch o := decodeStored(s).(type) {
		case *corev1.ServiceAccount:
			uids[s.Key] = string(o.UID)
		case *corev1.Pod:
			uids[s.Key] = string(o.UID)
		}
	}
	return uids
}, "/serviceaccounts/", "/pods/")

// AuthenticateRequest tells whose token a request bears, if any.
func (tokens) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "bearer") {
		return nil, false, nil
	}
	c, err := read(strings.TrimSpace(token))
	if err != nil {
		return nil, false, err
	}
	wanted, ok := authenticator.AudiencesFrom(r.Context())
	if !ok {
		wanted = audiences()
	}
	common := wanted.Intersect(c.Audience)
	in, k := accountsOf.Of(store.From(r.Context())), c.Kubernetes
	switch {
	case len(common) == 0:
		return nil, false, fmt.Errorf("the token is for %q", c.Audience)
	case time.Now().Unix() >= c.Expiry:
		return nil, false, errors.New("the token has expired")
	case in["/serviceaccounts/"+k.Namespace+"/"+k.Account.Name] != k.Account.UID:
		return nil, false, fmt.Errorf("the service account %s/%s of the token is gone", k.Namespace, k.Account.Name)
	case k.Pod != nil && in["/pods/"+k.Namespace+"/"+k.Pod.Name] != k.Pod.UID:
		return nil, false, fmt.Errorf("the pod %s/%s of the token is gone", k.Namespace, k.Pod.Name)
	}
	who := serviceaccount.ServiceAccountInfo{
		Name: k.Account.Name, Namespace: k.Namespace, UID: k.Account.UID, CredentialID: "JTI=" + c.ID,
	}
	if k.Pod != nil {
		who.PodName, who.PodUID = k.Pod.Name, k.Pod.UID
	}
	return &authenticator.Response{User: who.UserInfo(), Audiences: common}, true, nil
}

// read checks a token's signature and returns its claims.
func read(token string) (*claims, error) {
	parsed, err := jwt.ParseSigned(token)
	c := &claims{}
	if err != nil || parsed.Claims(key(), c) != nil {
		return nil, errors.New("not a token of this server")
	}
	return c, nil
}

// authenticated believes the token that a request bears. One without is from whom its
// transport says.
func authenticated(next http.Handler) http.Handler {
	refused := filters.Unauthorized(legacyscheme.Codecs)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			next.ServeHTTP(w, r)
			return
		}
		response, ok, err := tokens{}.AuthenticateRequest(r)
		if err != nil || !ok {
			refused.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Authorization")
		who := *response.User.(*user.DefaultInfo)
		who.Groups = append(who.Groups, user.AllAuthenticated)
		next.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), &who)))
	})
}

// authenticationProvider makes the group of token reviews.
type authenticationProvider struct {
	authenticationrest.RESTStorageProvider
}

// NewRESTStorage makes the real registries.
func (p authenticationProvider) NewRESTStorage(c serverstorage.APIResourceConfigSource, o generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	group, err := p.RESTStorageProvider.NewRESTStorage(c, o)
	if v1 := group.VersionedResourcesStorageMap["v1"]; err == nil && v1 != nil {
		v1["tokenreviews"] = reviews{v1["tokenreviews"].(*tokenreview.REST)}
	}
	return group, err
}

// reviews is the real registry, which forgets the context of a request before it asks about
// a token, and with it the cluster.
type reviews struct{ *tokenreview.REST }

// Create reviews a token.
func (reviews) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, o *metav1.CreateOptions) (runtime.Object, error) {
	return tokenreview.NewREST(within{store.From(ctx)}, audiences()).Create(ctx, obj, validate, o)
}

// within knows the tokens of one cluster.
type within struct{ db *store.DB }

// AuthenticateRequest tells whose token a request bears.
func (w within) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	return tokens{}.AuthenticateRequest(r.WithContext(store.With(r.Context(), w.db)))
}
