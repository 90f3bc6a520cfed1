import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { runProgram } from '@tutti/command-line/program'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { withCluster } from '../cluster.ts'
import { KUBECTL_PROGRAM } from '../kubectl-program.ts'
import { MODEL } from '../resources.ts'

const AddressInfo = z.object({ port: z.number() })

async function kubectlTutti(argv: readonly string[], env: Record<string, string> = {}) {
  const printed = { out: '', err: '' }
  const code = await runProgram(KUBECTL_PROGRAM, argv, {
    env,
    out: (text) => (printed.out += text),
    err: (text) => (printed.err += text),
    signals: { listen: () => () => {} },
    exit: () => {},
  })
  return { code, ...printed }
}

/** A kubeconfig whose only context has the API server at a port, without TLS, and an empty namespace. */
function kubeconfigFor(t: Test, port: number): string {
  const config = {
    'current-context': 'x',
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
    contexts: [{ name: 'x', context: { cluster: 'c', namespace: '' } }],
  }
  return join(t.testdir({ config: JSON.stringify(config) }), 'config')
}

await t.test('it lists its commands as kubectl users write them', async (t) => {
  t.match(await kubectlTutti(['--help']), {
    code: 0,
    out: /^Usage: kubectl tutti COMMAND[^]*status /,
  })
  t.match(await kubectlTutti(['status', '--help']), {
    out: /--namespace, -n .*[^]*--format, --output, -o/,
  })
  t.match(await kubectlTutti(['status', 'a', 'b']), {
    code: 2,
    err: /got 2 names, want at most one/,
  })
})

await t.test('a cluster that cannot be reached is named with what it said', async (t) => {
  const dir = t.testdir({ '.kube': {} })
  const env = { HOME: dir, KUBECONFIG: '' }
  const missing = await kubectlTutti(['status'], env)
  t.match(missing, {
    code: 1,
    err: /\.kube\/config: there is no kubeconfig; name one by KUBECONFIG or --kubeconfig/,
  })
  const config = {
    'current-context': 'x',
    // A port on which nothing listens.
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
    contexts: [{ name: 'x', context: { cluster: 'c' } }],
  }
  const file = join(t.testdir({ config: JSON.stringify(config) }), 'config')
  const away = await kubectlTutti(['status', `--kubeconfig=${file}`], env)
  t.match(away, { code: 1, err: /^kubectl tutti status: https:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/ })
  const other = await kubectlTutti(['status', `--kubeconfig=${file}`, '--context=y'], env)
  t.match(other, { code: 1, err: /context is "y", want a context with a cluster/ })
})

await t.test('an API server that never answers ends the command', async (t) => {
  const server = createServer(() => {})
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = AddressInfo.parse(server.address())
  const argv = ['status', `--kubeconfig=${kubeconfigFor(t, port)}`]
  t.match(await kubectlTutti([...argv, '--request-timeout=50ms']), {
    code: 1,
    err: /^kubectl tutti status: http:\/\/127\.0\.0\.1:\d+: GET \S+: no answer within 50 ms\n$/,
  })
  for (const value of ['0', 'soon']) {
    t.match(await kubectlTutti([...argv, `--request-timeout=${value}`]), {
      code: 2,
      err: /--request-timeout: "(0|soon)", want/,
    })
  }
})

await t.test('what the API server refuses is said in its words alone', async (t) => {
  const server = createServer((_request, response) => {
    response.writeHead(401, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ kind: 'Status', code: 401, message: 'Unauthorized' }))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const { port } = AddressInfo.parse(server.address())
  const file = kubeconfigFor(t, port)
  const { code, err } = await kubectlTutti(['status', `--kubeconfig=${file}`])
  t.equal(code, 1)
  t.match(err, /^kubectl tutti status: .*Unauthorized\n$/)
  const refused = withCluster({ kubeconfig: file }, { env: {} }, ({ client }) =>
    client.list(MODEL, {}),
  )
  await t.rejects(refused, { reason: 'UNAUTHENTICATED', message: /Unauthorized/ })
})

await t.test(
  'an API server is asked for the default namespace, and its words are shown as text',
  async (t) => {
    const paths: string[] = []
    const server = createServer((request, response) => {
      paths.push(request.url ?? '')
      response.writeHead(403, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ kind: 'Status', message: 'no\u001b[2J', code: 403 }))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = AddressInfo.parse(server.address())
    const argv = ['status', `--kubeconfig=${kubeconfigFor(t, port)}`, '--namespace=']
    const refused = await kubectlTutti(argv)
    t.match(refused, { code: 1, out: /you may not list pods \(no\\u001b\[2J\)/ })
    t.ok(
      paths.every((path) => path.includes('/namespaces/default/')),
      paths.join(' '),
    )
  },
)
