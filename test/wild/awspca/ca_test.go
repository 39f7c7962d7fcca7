package awspca

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// authorities is AWS Private CA: any ARN is a certificate authority that issues what it is asked for.
type authorities struct {
	mu     sync.Mutex
	issued []certificate
}

type certificate struct {
	arn, authority, token string
	csr                   []byte
	at                    time.Time
}

func (a *authorities) Resources() (all []fault.Resource) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.issued {
		all = append(all, fault.Resource{Kind: "certificate", ID: c.arn, State: c.authority + " " + string(c.csr), Ready: true})
	}
	return all
}

func (a *authorities) Clone() fault.ExternalAPI {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &authorities{issued: slices.Clone(a.issued)}
}

// issue issues a certificate. Within five minutes, a token stands for the same certificate.
func (a *authorities) issue(authority, token string, csr []byte) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.issued {
		if c.authority == authority && c.token == token && time.Since(c.at) < 5*time.Minute {
			return c.arn
		}
	}
	c := certificate{fmt.Sprintf("%s/certificate/%d", authority, len(a.issued)+1), authority, token, csr, time.Now()}
	a.issued = append(a.issued, c)
	return c.arn
}

func (a *authorities) find(arn string) (certificate, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.issued, func(c certificate) bool { return c.arn == arn })
	if i < 0 {
		return certificate{}, false
	}
	return a.issued[i], true
}

func encode(what string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(what)}))
}

// Handler speaks AWS's JSON protocol.
func (a *authorities) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			CertificateAuthorityArn, CertificateArn, IdempotencyToken string
			Csr                                                       []byte
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := map[string]any{}
		switch r.Header.Get("X-Amz-Target") {
		case "ACMPrivateCA.DescribeCertificateAuthority":
			out["CertificateAuthority"] = map[string]any{"CertificateAuthorityConfiguration": map[string]string{"SigningAlgorithm": "SHA256WITHRSA"}}
		case "ACMPrivateCA.IssueCertificate":
			out["CertificateArn"] = a.issue(in.CertificateAuthorityArn, in.IdempotencyToken, in.Csr)
		case "ACMPrivateCA.GetCertificate":
			c, ok := a.find(in.CertificateArn)
			if !ok {
				w.WriteHeader(http.StatusBadRequest)
				out["__type"] = "ResourceNotFoundException"
				break
			}
			out["Certificate"], out["CertificateChain"] = encode(c.authority+string(c.csr)), encode(c.authority)
		}
		_ = json.NewEncoder(w).Encode(out)
	})
}
