import type { Metrics } from '@tutti/chassis'
import type { HttpMethod } from './transport.ts'

/** Seconds; those of client-go. */
const BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]

/** Counts one request, by the status of its answer; undefined if it got no answer. */
export type CountRequest = (
  method: HttpMethod,
  status: number | undefined,
  durationMs: number,
) => void

/** Makes the metrics of client-go, with their names, so that dashboards for Go operators work. */
export function createRequestMetrics(metrics: Metrics, host: string): CountRequest {
  const requests = metrics.counter<'code' | 'method' | 'host'>({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server, by status code (<error>: no answer), method and host.',
    labels: ['code', 'method', 'host'],
  })
  const durations = metrics.histogram<'verb' | 'host'>({
    name: 'rest_client_request_duration_seconds',
    help: "Time to the answer's end, or to the head of a watch, by verb and host.",
    labels: ['verb', 'host'],
    buckets: BUCKETS,
  })
  requests.init({ code: '200', method: 'GET', host })
  durations.init({ verb: 'GET', host })
  return (method, status, durationMs) => {
    requests.add({ code: status === undefined ? '<error>' : String(status), method, host })
    durations.observe({ verb: method, host }, durationMs / 1000)
  }
}
