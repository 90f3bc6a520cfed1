import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { env } from 'node:process'
import { onFreePort, startProcess } from '@tutti/chassis/testing'
import type { Test } from 'tap'
import { stringify } from 'yaml'
import { tempFolder } from '../temp-repository.ts'

/** For tap's `skip`: why tests that need a Prometheus cannot run, or false if they can. */
export function withoutPrometheus(): string | false {
  if (env['TUTTI_PROMETHEUS']) return false
  return env['TUTTI_PROMETHEUS_MISSING'] ?? 'TUTTI_PROMETHEUS is not set'
}

/** The path of `prometheus` or `promtool`. */
export function prometheusProgram(name: 'prometheus' | 'promtool'): string {
  return join(env['TUTTI_PROMETHEUS'] ?? '', name)
}

/** A target that is scraped, with the labels that the monitors of the chart add. */
export interface ScrapeTarget {
  readonly job: string
  /** Port of the loopback. */
  readonly port: number
  readonly labels: Readonly<Record<string, string>>
}

/** One series of an answer. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: number
}

/** A request that stands for what a bucket counts. */
export interface Exemplar {
  readonly series: Sample['metric']
  readonly labels: Sample['metric']
}

/** An alert that is pending or fires. */
export interface Alert {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly state: string
}

/** Data that its API answers, of which tests look at parts. */
// oxlint-disable-next-line typescript/no-explicit-any -- a test's own assertions are the check
type Data = any

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>

/**
 * Starts a real Prometheus on the loopback that scrapes the targets each second. It ends with the test.
 *
 * @param o.groups - of rules, as a PrometheusRule has them.
 */
export async function startPrometheus(
  t: Test,
  o: { readonly targets: readonly ScrapeTarget[]; readonly groups?: readonly object[] },
) {
  const folder = await tempFolder(t)
  const config = join(folder, 'prometheus.yaml')
  await mkdir(join(folder, 'data'))
  await writeFile(join(folder, 'rules.yaml'), stringify({ groups: o.groups ?? [] }))
  await writeFile(config, stringify(toConfig(o.targets)))
  const port = await onFreePort(async (free) => {
    const flags = {
      'config.file': config,
      'storage.tsdb.path': join(folder, 'data'),
      'web.listen-address': `127.0.0.1:${free}`,
      'enable-feature': 'exemplar-storage',
    }
    const started = await startProcess(
      prometheusProgram('prometheus'),
      Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
      {
        cwd: folder,
        readyWhen: (line) => line.includes('Server is ready to receive web requests'),
      },
    )
    t.teardown(() => started.stop('SIGKILL'))
    return free
  })
  const ask = (path: string, query: Readonly<Record<string, string>> = {}) =>
    askPrometheus(port, path, query)
  return {
    /** Finds what an expression gives now. @throws Error with Prometheus' words for one that is none. */
    query: async (expr: string): Promise<readonly Sample[]> => {
      const { result } = await ask('query', { query: expr })
      return result.map(({ metric, value }: Data) => ({ metric, value: Number(value[1]) }))
    },
    /** The values of a label of the series that fit. */
    labelValues: async (series: string, label: string): Promise<readonly string[]> =>
      await ask(`label/${label}/values`, { 'match[]': series }),
    /** Traces that the buckets of an expression name, with the labels of their series, as Grafana asks for them. */
    exemplars: async (expr: string): Promise<readonly Exemplar[]> => {
      const [start, end] = [-3600, 60].map((seconds) => String(Date.now() / 1000 + seconds))
      const found = await ask('query_exemplars', {
        query: expr,
        start: start ?? '',
        end: end ?? '',
      })
      return found.flatMap(({ seriesLabels, exemplars }: Data) =>
        exemplars.map(({ labels }: Data) => ({ series: seriesLabels, labels })),
      )
    },
    alerts: async (): Promise<readonly Alert[]> => (await ask('alerts')).alerts,
  }
}

function toConfig(targets: readonly ScrapeTarget[]): object {
  return {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ['rules.yaml'],
    scrape_configs: targets.map(({ job, port, labels }, i) => ({
      job_name: `target-${i}`,
      static_configs: [{ targets: [`127.0.0.1:${port}`], labels: { ...labels, job } }],
    })),
  }
}

async function askPrometheus(
  port: number,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<Data> {
  const search = new URLSearchParams(query).toString()
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}?${search}`)
  const answer: Data = JSON.parse(await response.text())
  if (answer['status'] !== 'success') throw new Error(`${path}: ${answer['error']}`)
  return answer['data']
}
