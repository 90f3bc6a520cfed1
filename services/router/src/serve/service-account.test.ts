// needs: apiserver
import { request } from 'node:http'
import { parseEdgeRoutes } from '@tutti/api'
import { parseFlags, silentLogger, systemClock } from '@tutti/chassis'
import { createClient, createTransport } from '@tutti/kube'
import { startApiServer, withoutKube } from '@tutti/kube/testing'
import { openServers, SERVER_FLAGS } from '@tutti/server'
import { ScriptedBackend } from '@tutti/serving/testing'
import { ServerMetrics } from '@tutti/telemetry'
import t from 'tap'

await t.test(
  'a token of a real API server lets in its ServiceAccount, and nobody else',
  { skip: withoutKube() },
  async (t) => {
    const server = await startApiServer()
    t.teardown(() => server.stop())
    const { plain } = server
    const transport = createTransport(server.access(), {
      clock: systemClock,
      log: silentLogger,
      userAgent: 'test',
    })
    t.teardown(() => transport.close())
    const issuer = await createClient(transport).tokenIssuer()
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    for (const name of ['batch', 'other']) await plain.create(accounts, { metadata: { name } })
    const tokenOf = async (name: string, audience: string): Promise<string> => {
      const spec = { audiences: [audience] }
      return (await plain.create(`${accounts}/${name}/token`, { spec }))['status'].token
    }

    const account = { namespace: 'default', name: 'batch', audience: 'plates' }
    const identities = [{ name: 'batch', serviceAccount: account }]
    const routes = [{ hosts: ['a.example'], models: ['m'], identities }]
    const keys = [...issuer.keys]
    let access = parseEdgeRoutes({ routes, issuer: { ...issuer, keys } })
    const servers = await openServers({
      flags: parseFlags(SERVER_FLAGS, ['--allow-grpc=0', '--allow-http=0', '--allow-metrics=0'])
        .values,
      backend: new ScriptedBackend({ m: {} }),
      metrics: new ServerMetrics(),
      edge: { access: () => access, address: '127.0.0.1', grpcPort: 0, httpPort: 0 },
      clock: systemClock,
      log: silentLogger,
    })
    t.teardown(() => servers.close())
    const call = (token: string): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const headers = { host: 'a.example', authorization: `Bearer ${token}` }
        const o = {
          host: '127.0.0.1',
          port: servers.ports.edgeHttpPort,
          path: '/v2/models/m',
          headers,
        }
        request(o, (answer) => resolve(answer.resume().statusCode))
          .on('error', reject)
          .end()
      })

    const token = await tokenOf('batch', 'plates')
    t.equal(await call(token), 200)
    t.equal(await call(await tokenOf('batch', 'elsewhere')), 401, 'for another audience')
    t.equal(await call(await tokenOf('other', 'plates')), 401, 'of another ServiceAccount')
    const [header, payload, signature = ''] = token.split('.')
    const turned = Buffer.from(signature, 'base64url').toReversed()
    t.equal(
      await call(`${header}.${payload}.${Buffer.from(turned).toString('base64url')}`),
      401,
      'with another signature',
    )
    access = parseEdgeRoutes({ routes, issuer: { ...issuer, keys: [] } })
    t.equal(await call(token), 401, 'the key is gone')
  },
)
