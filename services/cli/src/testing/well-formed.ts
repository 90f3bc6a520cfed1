import { spawnSync } from 'node:child_process'
import { env } from 'node:process'

const PYTHON = env['TUTTI_TEST_PYTHON'] ?? ''

/** Reads each text from standard input, a JSON array, with a real parser of XML. */
const PARSE = `import json, sys, xml.etree.ElementTree as tree
print(json.dumps(["".join(tree.fromstring(one).itertext()) for one in json.load(sys.stdin)]))`

/** The texts within documents of XML. @throws Error for one that is not well-formed. */
export function readXmlTexts(documents: readonly string[]): readonly string[] {
  const { stdout, stderr, status } = spawnSync(PYTHON, ['-c', PARSE], {
    input: JSON.stringify(documents),
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}
