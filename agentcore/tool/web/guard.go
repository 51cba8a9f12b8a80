package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// refusal is why a place must not be reached, in words for the model.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// private are addresses of networks that are somebody's own, and never are those that
// only a permit for the very address opens: link-local ones, among them the metadata
// services of clouds (169.254.169.254, fd00:ec2::254), and those that are no single
// machine's. The lists are IANA's special-purpose registries (RFC 6890).
var (
	private = prefixes("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
	never   = prefixes("0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "100.100.100.200/32", "168.63.129.16/32",
		"::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2002::/16",
		"3fff::/20", "5f00::/16", "fd00:ec2::/32", "fe80::/10", "fec0::/10", "ff00::/8")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

func within(a netip.Addr, list []netip.Prefix) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// lookup resolves a name; net.DefaultResolver's LookupNetIP.
type lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// guard decides what may be reached, and connects to nothing else. A name is resolved
// once, and what was checked is what is dialled: a second answer of its server is
// never asked for (DNS rebinding).
type guard struct {
	permits []permit
	lookup  lookup
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

func newGuard(cfg Config) (*guard, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	g := &guard{lookup: net.DefaultResolver.LookupNetIP, dial: dialer.DialContext}
	for _, entry := range cfg.AllowPrivate {
		p, err := parsePermit(entry)
		if err != nil {
			return nil, err
		}
		g.permits = append(g.permits, p)
	}
	return g, nil
}

// badPorts are those of other protocols that are above 1023 (the Fetch standard's
// list); below, only 80 and 443 are those of the web.
var badPorts = []uint16{1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}

// checkURL refuses what is no plain web address, before anything is looked up.
func (g *guard) checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("only http and https can be fetched")
	case u.User != nil:
		return refuse("a URL with a user name or password in it is not fetched")
	case u.Hostname() == "":
		return refuse("the URL has no host")
	}
	port, err := portOf(u)
	if err != nil {
		return err
	}
	if (port < 1024 && port != 80 && port != 443 || slices.Contains(badPorts, port)) && !g.named(u.Hostname(), port) {
		return refuse("port %d is not one of the web", port)
	}
	return nil
}

func portOf(u *url.URL) (uint16, error) {
	s := u.Port()
	switch {
	case s == "" && u.Scheme == "http":
		return 80, nil
	case s == "":
		return 443, nil
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, refuse("the URL has no valid port")
	}
	return uint16(n), nil
}

// named says whether a permit names this host, or address, with this port.
func (g *guard) named(host string, port uint16) bool {
	a, _ := netip.ParseAddr(host)
	return slices.ContainsFunc(g.permits, func(p permit) bool {
		return (p.port == 0 || p.port == port) && (p.host != "" && p.host == canonicalHost(host) || p.network.Contains(a.Unmap()))
	})
}

// checkAddr refuses an address that a public name has no business to lead to.
func (g *guard) checkAddr(host string, a netip.Addr, port uint16) error {
	a = a.Unmap().WithZone("")
	secluded := within(a, never)
	switch {
	case !a.IsValid():
		return refuse("%s has no valid address", host)
	case !secluded && !within(a, private):
		return nil
	case slices.ContainsFunc(g.permits, func(p permit) bool {
		byName := p.host != "" && p.host == canonicalHost(host) && !secluded
		return (p.port == 0 || p.port == port) && (byName || p.network.Contains(a))
	}):
		return nil
	}
	return refuse("%s leads to an address that is not public. Only the owner can open it, by tools.web.allow_private", host)
}

// connect resolves, checks every address, and dials those that were checked. One that
// is refused refuses all: a name with a public and a private address is a trap.
func (g *guard) connect(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	addrs, err := g.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if err := g.checkAddr(host, a, uint16(number)); err != nil {
			return nil, err
		}
	}
	var failed error
	for _, a := range addrs {
		conn, err := g.dial(ctx, network, netip.AddrPortFrom(a.Unmap(), uint16(number)).String())
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

func (g *guard) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	addrs, err := g.lookup(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, refuse("%s has no address", host)
	}
	return addrs, nil
}
