package executor

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// passed are the variables of ours that a client gets. Keys and tokens live in variables of any name, so nothing else
// goes through.
var passed = []string{"PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT"}

// keyVariable holds the endpoint's key for the client, where there is one.
const keyVariable = "LOCALLLM_EXECUTOR_KEY"

// nowhere is an address that nothing listens on: a client that is to talk to this machine only can't reach out.
const nowhere = "http://127.0.0.1:9"

func (r *run) environment() []string {
	var env []string
	for _, name := range passed {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	for _, entry := range os.Environ() {
		if strings.HasPrefix(entry, "LC_") {
			env = append(env, entry)
		}
	}
	at := func(name string) string { return filepath.Join(r.home, name) }
	env = append(env, "HOME="+r.home, "USERPROFILE="+r.home, "XDG_CONFIG_HOME="+at(".config"), "XDG_DATA_HOME="+at(".local/share"),
		"XDG_STATE_HOME="+at(".local/state"), "XDG_CACHE_HOME="+at(".cache"), "TMPDIR="+at("tmp"), "TMP="+at("tmp"), "TEMP="+at("tmp"),
		"PWD="+r.copy.dir, "TERM=dumb", "NO_COLOR=1", "CI=true")
	if r.Endpoint.Key != "" {
		env = append(env, keyVariable+"="+r.Endpoint.Key)
	}
	if r.Endpoint.Loopback {
		env = append(env, "HTTP_PROXY="+nowhere, "HTTPS_PROXY="+nowhere, "http_proxy="+nowhere, "https_proxy="+nowhere,
			"NO_PROXY=127.0.0.1,localhost,::1", "no_proxy=127.0.0.1,localhost,::1")
		return env
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		value, set := os.LookupEnv(name)
		if u, err := url.Parse(value); set && (err != nil || u.User == nil) { // a password in it stays here
			env = append(env, name+"="+value)
		}
	}
	return env
}

// base is the endpoint's address without its version.
func (e Endpoint) base() string {
	return strings.TrimSuffix(strings.TrimRight(e.URL, "/"), "/v1")
}

func (e Endpoint) key() string {
	if e.Key == "" {
		return "none" // clients insist on one
	}
	return e.Key
}
