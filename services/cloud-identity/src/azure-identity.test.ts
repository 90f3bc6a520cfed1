import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SecretText } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import { openAzure } from './azure-identity.ts'
import { entraAnswers, ScriptedServer } from './testing/scripted-server.ts'

const AUTHORITY = 'https://login.example/11111111-2222-3333-4444-555555555555'
const CLIENT = {
  tenantId: '11111111-2222-3333-4444-555555555555',
  clientId: '66666666-7777-8888-9999-000000000000',
  authorityHost: 'https://login.example/',
}
const given = (value: string) => ({
  json: { token_type: 'Bearer', access_token: value, expires_in: 3600 },
})

await t.test('a pod changes the token of its cluster for one of Azure, and keeps it', async (t) => {
  const tokenFile = join(t.testdir({}), 'token')
  await writeFile(tokenFile, 'of-the-cluster\n')
  const server = new ScriptedServer(entraAnswers(given('of-azure')))
  const source = await openAzure({ kind: 'workload', ...CLIENT, tokenFile })
  t.equal(await source(server.send), 'of-azure')
  t.equal(await source(server.send), 'of-azure')
  const forms = server.forms(`${AUTHORITY}/oauth2`)
  t.equal(forms.length, 1)
  t.match(forms[0], {
    client_assertion: 'of-the-cluster',
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_id: CLIENT.clientId,
    grant_type: 'client_credentials',
    scope: /^https:\/\/storage\.azure\.com\/\.default/,
  })
})

await t.test('a program may have a secret of its own', async (t) => {
  const server = new ScriptedServer(entraAnswers(given('of-azure')))
  const source = await openAzure({ kind: 'secret', ...CLIENT, secret: new SecretText('hidden') })
  t.equal(await source(server.send), 'of-azure')
  t.match(server.forms(`${AUTHORITY}/oauth2`)[0], { client_secret: 'hidden' })
})

await t.test('a machine gives the token of its identity', async (t) => {
  const IMDS = 'http://169.254.169.254/metadata/identity/oauth2/token'
  const expires = String(Math.floor(Date.now() / 1000) + 3600)
  const json = { token_type: 'Bearer', access_token: 'of-the-machine', expires_on: expires }
  const server = new ScriptedServer({ [IMDS]: { json } })
  const own = await openAzure({ kind: 'managed', clientId: undefined })
  t.equal(await own(server.send), 'of-the-machine')
  t.match(server.heard[0], { headers: { metadata: 'true' } })
  t.equal(server.heard[0]?.url.searchParams.get('resource'), 'https://storage.azure.com')
  const { clientId } = CLIENT
  const named = await openAzure({ kind: 'managed', clientId })
  t.equal(await named(server.send), 'of-the-machine')
  t.equal(server.heard.at(-1)?.url.searchParams.get('client_id'), clientId)
})

await t.test('a refusal says what the server says, and no secret', async (t) => {
  const refusal = {
    status: 400,
    json: {
      error: 'invalid_client',
      error_description: 'AADSTS70021: No matching federated identity record found.\r\nTrace ID: 1',
    },
  }
  const source = await openAzure({ kind: 'secret', ...CLIENT, secret: new SecretText('hidden') })
  const failure: unknown = await source(new ScriptedServer(entraAnswers(refusal)).send).catch(
    (error: unknown) => error,
  )
  t.match(failure, {
    reason: 'ARTIFACT_DENIED',
    message: `'${AUTHORITY}/oauth2/v2.0/token' answered 400, asked for a token of Azure: AADSTS70021: No matching federated identity record found.`,
  })
  t.notMatch(String(failure), 'hidden')
  const busy = new ScriptedServer(entraAnswers({ status: 503, json: 'busy' }))
  await t.rejects(source(busy.send), { reason: 'ARTIFACT_UNAVAILABLE', message: /answered 503/ })
  const lost = new ServeError('ARTIFACT_UNAVAILABLE', 'lost')
  const cut = new ScriptedServer({ 'https://login.example': lost })
  await t.rejects(source(cut.send), lost, 'the error of the request itself')
  const well = new ScriptedServer(entraAnswers(given('later')))
  t.equal(await source(well.send), 'later', 'a failure is not kept')
})

await t.test('a file that is absent is named', async (t) => {
  const source = await openAzure({ kind: 'workload', ...CLIENT, tokenFile: '/none/token' })
  const server = new ScriptedServer(entraAnswers(given('x')))
  await t.rejects(source(server.send), { message: /ENOENT.*\/none\/token/ })
})
