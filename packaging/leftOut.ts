/**
 * Parts of libraries that the app never comes to, and that would be half of its package. Each is replaced by a module whose
 * every export is a class that says, when it is made, that it was left out; loading costs nothing.
 *
 * `applicationinsights` brings the whole of OpenTelemetry's node SDK: exporters to other systems, patches for other people's
 * libraries. What is told goes to one place (shared/telemetry/applicationInsights.ts), and every patch is switched off there.
 */
const PACKAGES = [
  // Other systems to send to, and their encodings.
  /^@grpc\/grpc-js$/,
  /^protobufjs(\/.*)?$/,
  /^@opentelemetry\/(exporter-|otlp-).+$/,
  /^@opentelemetry\/propagator-(b3|jaeger)$/,
  // Set up from a file, which the app does not have.
  /^@opentelemetry\/configuration$/,
  /^yaml$/,
  // Patches for databases, loggers and HTTP, for browsers and for the Azure SDK.
  /^@opentelemetry\/instrumentation-.+$/,
  /^@opentelemetry\/(winston-transport|sql-common|sdk-trace-web)$/,
  /^@azure\/opentelemetry-instrumentation-azure-sdk$/,
  /^@microsoft\/applicationinsights-web-snippet$/,
  /^(import|require)-in-the-middle$/,
  // Opens a browser to log in: nobody sits at a function app.
  /^open$/,
];

/** Whether the package that is imported as `name` is left out. */
export function isLeftOut(name: string): boolean {
  return PACKAGES.some((pattern) => pattern.test(name));
}

/** Source of the module that stands in for package `name`. */
export function standIn(name: string): string {
  return `
    class LeftOut { constructor() { throw new Error(${JSON.stringify(`${name} is not part of the package`)}); } }
    // Behind the prototype: the importing side copies own names and takes the others from there.
    module.exports = Object.create(new Proxy({}, { get: (_, name) => name === '__esModule' ? true : LeftOut }));
  `;
}
