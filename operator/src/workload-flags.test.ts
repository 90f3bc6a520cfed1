import { readFile } from 'node:fs/promises'
import { parseFlags } from '@tutti/chassis'
import * as fc from 'fast-check'
import t from 'tap'
import { checkOperatorFlags, OPERATOR_FLAGS } from './operator-flags.ts'

const CHECKS = new URL('../../charts/tutti/templates/_checks.tpl', import.meta.url)

/** Whether the operator starts with this collector. */
function isTaken(endpoint: string): boolean {
  try {
    checkOperatorFlags(parseFlags(OPERATOR_FLAGS, [`--otlp-endpoint=${endpoint}`]).values)
    return true
  } catch {
    return false
  }
}

/** Whether the chart lets it pass, by the two patterns of its template. */
async function openChartRule(): Promise<(endpoint: string) => boolean> {
  const text = await readFile(CHECKS, 'utf8')
  const [, template = ''] = /define "tutti\.isCollector" -\}\}(.*?)yes/s.exec(text) ?? []
  const [wanted, unwanted] = [...template.matchAll(/regexMatch `([^`]+)`/g)].map(
    ([, pattern = '']) => new RegExp(pattern),
  )
  if (wanted === undefined || unwanted === undefined) throw new Error('want two patterns')
  return (endpoint) => wanted.test(endpoint) && !unwanted.test(endpoint)
}

const GOOD = [
  'http://c:4318',
  'https://otel.monitoring.svc.cluster.local:4318',
  'https://c.example/otlp/',
  'http://10.0.0.255:1/a/b.c',
  'http://[::1]:4318',
  'http://[fd00::a:1]',
  'http://[1:2:3:4:5:6:7:8]:65535',
  'http://c_d.e--f',
]
const ODD = [
  'http://c:65536',
  'http://c:x',
  'http://1.2.3',
  'http://1.2.3.256',
  'http://4294967296',
  'http://a.0x1',
  'http://[::1',
  'http://[1:2]',
  'http://[1::2::3]',
  'http://xn--/',
  'http://c/v1/./traces',
  'http://c/v1\\traces',
  'http://c/v1/trace%73/../traces',
  'http://c/v1/traces/',
  'http://c?x',
  'http://c#x',
  'http:c',
  'http://',
  'ftp://c',
  'c:4318',
]

await t.test('what the chart lets pass does not stop the operator', async (t) => {
  const passes = await openChartRule()
  for (const endpoint of GOOD) t.ok(passes(endpoint) && isTaken(endpoint), endpoint)
  for (const endpoint of ODD) t.notOk(passes(endpoint), endpoint)
  t.ok(ODD.filter((endpoint) => !isTaken(endpoint)).length > 15)

  const piece = fc.oneof(
    fc.constantFrom('a', 'C', '_', '-', '.', '..', ':', '/', '\\', '[', ']', '::', '@', '%2e'),
    fc.constantFrom('v1/', 'traces', 'xn--', '0x', '255.', '256', '65535', ' ', '?', '#', '\u00df'),
    fc.nat(70_000).map(String),
  )
  const endpoints = fc.tuple(fc.constantFrom('http://', 'https://a', ''), fc.array(piece))
  let passed = 0
  fc.assert(
    fc.property(endpoints, ([scheme, pieces]) => {
      const endpoint = `${scheme}${pieces.join('')}`
      if (!passes(endpoint)) return
      passed += 1
      t.ok(isTaken(endpoint), endpoint)
    }),
    { numRuns: 3000 },
  )
  t.ok(passed > 100, `${passed} of them`)
})
