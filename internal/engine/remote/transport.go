package remote

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// keyed adds the key to what goes to the endpoint's own address, and refuses to send anything elsewhere.
type keyed struct {
	client *Client
	next   *http.Transport
}

func (k *keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	base := k.client.base
	if req.URL.Scheme != base.Scheme || !strings.EqualFold(req.URL.Host, base.Host) {
		return nil, fmt.Errorf("%w: %s instead of %s", errElsewhere, req.URL.Host, base.Host)
	}
	if k.client.Key != "" && k.client.auth != nil {
		req = req.Clone(req.Context())
		k.client.auth(req.Header, k.client.Key)
	}
	return k.next.RoundTrip(req)
}

func (k *keyed) CloseIdleConnections() { k.next.CloseIdleConnections() }

// transport dials only what an endpoint may be. A proxy of the environment is used for https alone: there it sees
// neither the key nor the prompt.
func transport(base *url.URL) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: onlyEndpoints}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        20 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // events must not wait in a compressor's buffer
		MaxResponseHeaderBytes: 1 << 20,
	}
	if base.Scheme == "https" && !loopbackHost(base.Hostname()) {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

func loopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// Addresses at which clouds hand out a machine's own credentials, beside the link-local ones.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200")}

// onlyEndpoints sees the address after the name was resolved, so that no name can lead to a refused one.
func onlyEndpoints(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	return checkAddress(addr)
}

func checkAddress(addr netip.Addr) error {
	plain := addr.WithZone("").Unmap()
	refused := plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified()
	for _, m := range metadata {
		refused = refused || plain == m
	}
	if refused {
		return fmt.Errorf("%w: %s", errAddress, addr)
	}
	return nil
}
