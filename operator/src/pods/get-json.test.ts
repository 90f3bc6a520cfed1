import { Agent } from 'node:http'
import { systemClock } from '@tutti/chassis'
import t from 'tap'
import { startPodServer } from '../testing/pod-server.ts'
import { getJson } from './get-json.ts'

const WHOLE = '\\ud83d\\ude00'

const CASES: readonly (readonly [string, unknown])[] = [
  ['{"a": "x\\ud800"}', { a: 'x\ufffd' }],
  ['{"x\\ud800": 1}', { 'x\ufffd': 1 }],
  ['[{"a": {"\\udc00y": ["\\udc00"]}}]', [{ a: { '\ufffdy': ['\ufffd'] } }]],
  [`{"${WHOLE}": "${WHOLE}"}`, { '😀': '😀' }],
]

await t.test('what a pod says has no halves of characters, in values and in names', async (t) => {
  let answer = ''
  const server = await startPodServer({
    listener: (_request, response) => void response.end(answer),
  })
  t.teardown(() => server.close())
  const agent = new Agent()
  t.teardown(() => agent.destroy())
  const { ip, port } = server
  const { signal } = new AbortController()
  const limits = { timeoutMs: 10_000, maxBytes: 1000 }
  const o = { agent, clock: systemClock, pod: 'p', ip, port, path: '/', ...limits, signal }
  for (const [text, wanted] of CASES) {
    answer = text
    t.same(await getJson(o), wanted, text)
  }
})
