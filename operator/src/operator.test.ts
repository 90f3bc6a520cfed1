// needs: apiserver
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type StartedProcess, startProcess } from '@tutti/chassis/testing'
import {
  type ApiServer,
  type HttpFaultProxy,
  type PlainObject,
  startApiServer,
  startHttpFaultProxy,
  withoutKube,
} from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { bindAdmin } from './testing/prepare-server.ts'
import { sideBySide } from './testing/side-by-side.ts'
import { installToys } from './testing/toy.ts'

const PROGRAM = join(import.meta.dirname, 'testing', 'toy-operator.ts')
/** Short, for those whose lease ends by itself. */
const TIMES = [
  '--leader-elect-lease-duration=8',
  '--leader-elect-renew-deadline=6',
  '--leader-elect-retry-period=1',
]
/** For the others: processes that start side by side, and a server that starts again, take longer than the short ones. */
const PATIENT = ['--leader-elect-lease-duration=90', '--leader-elect-renew-deadline=80']

/** That a transport opens at once. */
const MOST_CONNECTIONS = 32

const says = (message: string) => (line: string) => line.includes(`"message":"${message}"`)

const renewedMs = (lease: PlainObject | undefined) => Date.parse(lease?.['spec'].renewTime)

interface Operator {
  readonly process: StartedProcess
  readonly proxy: HttpFaultProxy
  /** Resolves when it leads. */
  readonly leads: () => Promise<string>
  /** A series of `/metrics`. */
  readonly read: (series: string) => Promise<number>
  readonly probe: (path: string) => Promise<{ readonly status: number; readonly text: string }>
}

async function fetchText(port: number, path: string) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  return { status: response.status, text: await response.text() }
}

async function startOperator(
  t: Test,
  server: ApiServer,
  name: string,
  flags: readonly string[] = [],
): Promise<Operator> {
  const proxy = await startHttpFaultProxy(server)
  const dir = await server.createServiceAccountDir('tutti-system', 'operator')
  const started = await startProcess(
    process.execPath,
    [PROGRAM, '--health-port=0', '--metrics-port=0', ...TIMES, ...flags],
    {
      env: {
        POD_NAME: name,
        KUBERNETES_SERVICE_HOST: proxy.url.hostname,
        KUBERNETES_SERVICE_PORT: proxy.url.port,
        TUTTI_SERVICE_ACCOUNT_DIR: dir,
      },
      readyWhen: says('started'),
      readyTimeoutMs: 60_000,
    },
  )
  t.teardown(async () => {
    await started.stop('SIGKILL')
    await proxy.close()
  })
  const ports = JSON.parse(await started.waitForLine(says('probes and metrics are answered')))
  return {
    process: started,
    proxy,
    leads: () => started.waitForLine(says('leading')),
    probe: (path) => fetchText(ports.probes, path),
    read: async (series) => {
      const { text } = await fetchText(ports.metrics, '/metrics')
      const line = text.split('\n').find((one) => one.startsWith(`${series} `))
      return Number(line?.slice(series.length))
    },
  }
}

await t.test('as processes, against a real API server', { skip: withoutKube() }, async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  const { plain } = server
  await installToys(plain)
  await server.createServiceAccountDir('tutti-system', 'operator')
  await bindAdmin(plain, 'tutti-system')
  let made = 0
  /** A namespace with toys, and a lease, of a subtest's own. */
  const open = async (t: Test) => {
    made += 1
    const namespace = `toys-${made}`
    await plain.create('/api/v1/namespaces', { metadata: { name: namespace } })
    const toyPath = (name: string) => `/apis/test.tutti.dev/v1/namespaces/${namespace}/toys/${name}`
    const childPath = (name: string) =>
      `/apis/apps/v1/namespaces/${namespace}/deployments/${name}-step`
    const leasePath = `/apis/coordination.k8s.io/v1/namespaces/tutti-system/leases/${namespace}`
    const lease = async () => (await plain.get(leasePath))['spec']
    const own = [`--watch-namespace=${namespace}`, `--leader-elect-resource-name=${namespace}`]
    return {
      namespace,
      toyPath,
      childPath,
      leasePath,
      lease,
      holder: async () => (await lease()).holderIdentity as string,
      start: (name: string, flags: readonly string[] = []) =>
        startOperator(t, server, name, [...own, ...flags]),
      applyToy: (name: string, spec: object) =>
        plain.apply(toyPath(name), {
          apiVersion: 'test.tutti.dev/v1',
          kind: 'Toy',
          metadata: { name },
          spec,
        }),
      /** Until its status says that this generation is applied. */
      applied: async (name: string) => {
        await plain.until(toyPath(name), (toy) => {
          const { metadata, status } = toy ?? {}
          return status?.observedGeneration === metadata?.generation
        })
        return await plain.get(childPath(name))
      },
    }
  }

  await sideBySide(t, {
    'one leads, the others stand by warm; each end of a leader has a successor': async (
      t: Test,
    ) => {
      const { namespace, lease, holder, start, applyToy, applied } = await open(t)
      const one = await start('one')
      await one.leads()
      const two = await start('two')
      for (const { probe } of [one, two]) {
        t.same(await probe('/livez'), { status: 200, text: 'ok\n' })
        t.same(await probe('/readyz'), { status: 200, text: 'ok\n' })
        t.equal((await probe('/other')).status, 404)
      }
      await applyToy('a', { replicas: 1 })
      const first = await applied('a')
      t.equal(await one.read(`leader_election_master_status{name="${namespace}"}`), 1)
      t.equal(await two.read(`leader_election_master_status{name="${namespace}"}`), 0)
      t.equal(await two.read('cache_objects{resource="toys"}'), 1)
      t.same(two.proxy.writes, [], 'a standby writes nothing')

      // Killed: its lease ends by itself.
      await one.process.stop('SIGKILL')
      await two.leads()
      await applyToy('a', { replicas: 2 })
      const second = await applied('a')
      t.equal(second['spec'].replicas, 2)
      t.equal(second['metadata'].uid, first['metadata'].uid)

      // Frozen: another takes over, and the frozen one ends when it wakes up, without a write.
      const three = await start('three')
      const writes = two.proxy.writes.length
      two.process.kill('SIGSTOP')
      await three.leads()
      await applyToy('a', { replicas: 3 })
      await applied('a')
      two.process.kill('SIGCONT')
      t.same(await two.process.exited, { code: 1, signal: null })
      await two.process.waitForLine(says('lease lost, ending at once'))
      t.equal(two.proxy.writes.length, writes)
      t.match(await holder(), /^three_/)

      // Told to stop: it gives the lease up, and the next one need not wait for its end.
      const four = await start('four')
      t.same(await three.process.stop('SIGTERM'), { code: 0, signal: null })
      await three.process.waitForLine(says('lease released'))
      await four.leads()
      await applyToy('a', { replicas: 4 })
      t.equal((await applied('a'))['spec'].replicas, 4)
      t.equal((await lease()).leaseTransitions, 3)
      t.same(await four.process.stop('SIGTERM'), { code: 0, signal: null })
      t.equal(await holder(), '')
    },

    'reconciles in flight end before the lease is given up': async (t: Test) => {
      const { holder, start, applyToy } = await open(t)
      const operator = await start('busy', PATIENT)
      await operator.leads()
      const gate = Promise.withResolvers<void>()
      const blocked = Promise.withResolvers<void>()
      let waiting = 0
      operator.proxy.addRule({
        path: /deployments\/c\d+-step$/,
        isWrite: true,
        when: () => {
          waiting += 1
          if (waiting === 8) blocked.resolve()
          return true
        },
        fault: { type: 'wait', until: gate.promise },
      })
      for (let at = 0; at < 50; at++) await applyToy(`c${at}`, { replicas: 1 })
      await blocked.promise
      operator.process.kill('SIGTERM')
      await operator.process.waitForLine(says('draining'))
      t.match(await holder(), /^busy_/, 'it still leads')
      t.equal((await operator.probe('/readyz')).status, 503)
      gate.resolve()
      t.same(await operator.process.exited, { code: 0, signal: null })
      t.equal(await holder(), '')
      t.equal(waiting, 8, 'no new reconcile began')
    },

    'what does not end in time is aborted, and the lease is given up all the same': async (
      t: Test,
    ) => {
      const { holder, start, applyToy } = await open(t)
      const operator = await start('hung', [...PATIENT, '--exit-timeout-secs=5'])
      await operator.leads()
      const blocked = Promise.withResolvers<void>()
      operator.proxy.addRule({
        path: /configmaps/,
        isWrite: true,
        when: () => {
          blocked.resolve()
          return true
        },
        fault: { type: 'drop' },
      })
      await applyToy('d', { replicas: 1 })
      await blocked.promise
      t.same(await operator.process.stop('SIGTERM', 30_000), { code: 0, signal: null })
      t.equal(await holder(), '')
    },

    'case 31: a reconcile that holds the event loop delays others, and no more': async (
      t: Test,
    ) => {
      const { start, applyToy, applied, holder, lease } = await open(t)
      const operator = await start('held', PATIENT)
      await operator.leads()
      const leader = await holder()
      await applyToy('poison', { replicas: 1, holdMs: 2500 })
      for (const name of ['one', 'two']) await applyToy(name, { replicas: 1 })
      for (const name of ['one', 'two', 'poison']) await applied(name)
      const line = await operator.process.waitForLine(says('event loop is late'))
      t.ok(JSON.parse(line).longestMs > 1000, line)
      t.equal(await holder(), leader, 'it still leads')
      t.equal((await lease()).leaseTransitions, 0)
      t.equal((await operator.probe('/livez')).status, 200)
    },

    'requests that the server holds up do not cost the lease': async (t: Test) => {
      const { namespace, leasePath, start, applyToy } = await open(t)
      const operator = await start('patient')
      await operator.leads()
      const held = Promise.withResolvers<void>()
      let waiting = 0
      operator.proxy.addRule({
        path: /\/events$/,
        isWrite: true,
        when: () => {
          waiting += 1
          if (waiting === MOST_CONNECTIONS) held.resolve()
          return true
        },
        fault: { type: 'drop' },
      })
      for (let at = 0; at < MOST_CONNECTIONS; at++) {
        // Somebody else's, which is worth an event.
        await plain.create(`/api/v1/namespaces/${namespace}/configmaps`, {
          metadata: { name: `e${at}-text` },
        })
        await applyToy(`e${at}`, { text: 'x' })
      }
      await held.promise
      const beforeMs = renewedMs(await plain.get(leasePath))
      const end = operator.process.exited.then(() => 'ended')
      // Longer than it may fail to renew.
      const renewed = plain
        .until(leasePath, (found) => renewedMs(found) > beforeMs + 8000)
        .then(() => 'renewed')
      t.equal(await Promise.race([renewed, end]), 'renewed')
    },

    'a stop during the first sync is no failure': async (t: Test) => {
      const proxy = await startHttpFaultProxy(server)
      t.teardown(() => proxy.close())
      proxy.addRule({ path: /toys/, fault: { type: 'drop' } })
      const started = await startProcess(
        process.execPath,
        [PROGRAM, '--health-port=0', '--metrics-port=0'],
        {
          env: { KUBECONFIG: await kubeconfigOf(server, proxy) },
          readyWhen: says('probes and metrics are answered'),
        },
      )
      t.same(await started.stop('SIGTERM'), { code: 0, signal: null })
    },
  })

  // The last one: it kills the server.
  await t.test(
    'at rest nothing is written, and a pass without a change writes nothing',
    async (t) => {
      const { toyPath, childPath, start, applyToy, applied } = await open(t)
      const operator = await start('rest', PATIENT)
      await operator.leads()
      await applyToy('b', { replicas: 1, text: 'x', service: 'b-http' })
      await applied('b')
      const passes = () =>
        operator.read('controller_runtime_reconcile_total{controller="toy",result="success"}')
      /** Until the events of its own writes are through. */
      const settled = async (): Promise<number> => {
        let last = -1
        for (let now = await passes(); now !== last; now = await passes()) {
          last = now
          await sleep(300)
        }
        return last
      }
      const before = await settled()
      const writes = operator.proxy.writes.length
      await plain.patch(toyPath('b'), { metadata: { labels: { seen: 'yes' } } })
      while ((await passes()) === before) await sleep(20)
      await settled()
      t.equal(operator.proxy.writes.length, writes)
      // A watch that is cut, and a server that is killed, lose nothing and end nothing.
      operator.proxy.cut()
      await server.kill()
      await server.restart()
      await plain.delete(childPath('b'))
      await plain.until(childPath('b'), (child) => child !== undefined)
      t.equal((await operator.probe('/livez')).status, 200)
      t.same(await operator.process.stop('SIGTERM'), { code: 0, signal: null })
    },
  )
})

/** The server's kubeconfig, by way of a proxy. */
async function kubeconfigOf(server: ApiServer, proxy: HttpFaultProxy): Promise<string> {
  const file = await server.kubeconfig()
  const text = await readFile(file, 'utf8')
  const other = `${file}.proxy`
  await writeFile(other, text.replaceAll(server.url.host, proxy.url.host))
  return other
}
