package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/auth"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/cors"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	assets "github.com/temporalio/ui-server/v2/ui"
)

// webUI is Temporal's UI on a listener of its caller's. It puts the parts of the ui-server module together as that module's own
// server does, which opens its port by itself and ends the process where another one took it.
type webUI struct {
	server *http.Server
	ended  chan error
}

// startUI serves the UI of the service at an address.
func startUI(listener net.Listener, service, namespace string) (*webUI, error) {
	handler, err := uiHandler(&config.Config{
		TemporalGRPCAddress: service, Host: Host, EnableUI: true, DefaultNamespace: namespace,
		DisableNewsFetch: true, HideLogs: true, CORS: config.CORS{CookieInsecure: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start the Temporal UI: %w", err)
	}
	u := &webUI{server: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}, ended: make(chan error, 1)}
	go func() { u.ended <- u.server.Serve(listener) }()
	return u, nil
}

func uiHandler(c *config.Config) (http.Handler, error) {
	provider, err := config.NewConfigProviderWithRefresh(c)
	if err != nil {
		return nil, err
	}
	pages, err := assets.Assets()
	if err != nil {
		return nil, err
	}
	if pages, err = fs.Sub(pages, "local"); err != nil {
		return nil, err
	}
	forwarded := []string{auth.AuthorizationExtrasHeader, "Caller-Type"}
	e := echo.New()
	e.Use(middleware.Recover(), middleware.Gzip())
	e.Use(cors.CORSMiddleware(cors.CORSConfig{
		AllowHeaders: append([]string{
			echo.HeaderOrigin, echo.HeaderContentType, echo.HeaderAccept, echo.HeaderXCSRFToken, echo.HeaderAuthorization,
		}, forwarded...),
		AllowCredentials: true, ConfigProvider: provider,
	}))
	secure := !c.CORS.CookieInsecure
	e.Use(middleware.Secure(), csrf.EnsureTokenCookie(secure), middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, secure)))
	e.Pre(route.PublicPath(c.PublicPath))
	route.SetHealthRoute(e)
	if err := route.SetAPIRoutes(e, provider, []api.Middleware{headers.WithForwardHeaders(forwarded)}); err != nil {
		return nil, err
	}
	route.SetAuthRoutes(e, provider)
	if err := route.SetUIRoutes(e, c.PublicPath, pages, provider); err != nil {
		return nil, err
	}
	route.SetRenderRoute(e, "/")
	return e, nil
}

// stop ends the UI and every connection to it.
func (u *webUI) stop() error {
	err := u.server.Close()
	if served := <-u.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
