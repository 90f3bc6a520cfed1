import t from 'tap'
import { scriptedS3Cloud } from '../testing/cloud-buckets.ts'
import { testMirror } from '../testing/mirror-contract.ts'

await t.test('repositories in S3', (t) => testMirror(t, scriptedS3Cloud()))
