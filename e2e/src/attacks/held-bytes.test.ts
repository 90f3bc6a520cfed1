import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { restCall } from '../rest-call.ts'
import { inferPath, JSON_LENGTH, restBody } from '../rest-infer.ts'
import { ROOT, type Serving, serve } from '../serving.ts'
import { copyModels, tempFolder } from '../temp-repository.ts'
import { GROWING_MODEL, HOLDS, type Holding, holdBytes } from './held-bytes.ts'

t.setTimeout(300_000)

const MEBIBYTE = 2 ** 20
const POOL_BYTES = 16 * MEBIBYTE
const TOKENS = { attacker: 'attacks', other: 'works' }
/** Pixels of each side of a picture of some 200 KB, whose answer has 800 KB. */
const SIDE = 256

/** A server with a small pool, and two identities where `hasIdentities`. */
async function serveSmall(t: Test, hasIdentities = false): Promise<Serving> {
  const flags = ['--model-control-mode=explicit', '--load-model=*']
  if (hasIdentities) {
    const file = join(await tempFolder(t), 'access.yaml')
    const identities = Object.entries(TOKENS).map(([name, token]) => {
      const digest = createHash('sha256').update(token).digest('hex')
      const quota = name === 'attacker' ? ', quota: { concurrentRequests: 2 }' : ''
      return `  - { name: ${name}, tokenSha256: [${digest}], models: ["*"]${quota} }`
    })
    await writeFile(file, `identities:\n${identities.join('\n')}\n`)
    flags.push(`--access-file=${file}`)
  }
  return await serve(t, {
    repositories: [await copyModels(t, [GROWING_MODEL], { from: join(ROOT, 'model_repository') })],
    flags: [...flags, `--max-inflight-bytes=${POOL_BYTES}`],
  })
}

/** Asks as another client, with a picture whose request and answer have a megabyte, and returns what the client gets. */
async function ask({ httpPort }: Serving, token?: string): Promise<string> {
  const data = Buffer.alloc(SIDE * SIDE * 3)
  const { body, jsonBytes } = restBody([
    { name: 'input__0', datatype: 'UINT8', shape: [SIDE, SIDE, 3], data },
  ])
  const headers = {
    [JSON_LENGTH]: String(jsonBytes),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  }
  const answer = await restCall(httpPort, 'POST', inferPath(GROWING_MODEL), { body, headers })
  return answer.status === 200 ? '200' : `${answer.status}: ${answer.body.toString()}`
}

/** The sum of the series of a metric. */
async function sumOf({ metricsPort }: Serving, name: string): Promise<number> {
  const text = (await restCall(metricsPort, 'GET', '/metrics')).body.toString()
  const counts = [...text.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'gm'))]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}

const ENDED = 'tutti_server_ended_calls_total'

/** Has connections hold more bytes than there may be, then asks as another client. */
async function attack(t: Test, serving: Serving, hold: (i: number) => Holding): Promise<void> {
  const before = await sumOf(serving, ENDED)
  const holdings: Holding[] = []
  for (let i = 0; i < 12; i++) holdings.push(hold(i))
  await Promise.all(holdings.map(({ sent }) => sent))
  // Requests that they have in work are another matter.
  await until('nothing is in work', async () => {
    return (await sumOf(serving, 'nv_inference_pending_request_count')) === 0
  })
  const token = TOKENS.other
  const got: string[] = []
  for (let i = 0; i < 8; i++) got.push(await ask(serving, token))
  for (const holding of holdings) holding.close()
  t.same([...new Set(got)], ['200'], 'another client is answered')
  t.ok((await sumOf(serving, ENDED)) > before, 'calls of the attackers have ended')
}

await t.test('clients that hold bytes for which they do nothing keep nobody out', async (t) => {
  const serving = await serveSmall(t)
  for (const hold of HOLDS) {
    await t.test(hold, async (t) => {
      await attack(t, serving, () => holdBytes(serving, hold, { side: 600, calls: 1 }))
    })
  }
})

await t.test('an identity holds a quarter of the pool, and keeps no other one out', async (t) => {
  const serving = await serveSmall(t, true)
  for (const hold of HOLDS) {
    await t.test(hold, async (t) => {
      const token = TOKENS.attacker
      await attack(t, serving, () => holdBytes(serving, hold, { side: 600, calls: 1, token }))
    })
  }
})
