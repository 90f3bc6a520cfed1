export {
  type Answer,
  type ArtifactServer,
  answerStatus,
  cutAfter,
  serveBytes,
  startArtifactServer,
  startTlsArtifactServer,
} from './artifact-server.ts'
export { azuriteCloud, type Cloud, fakeGcsCloud, withoutServer } from './cloud-buckets.ts'
export { testMirror } from './mirror-contract.ts'
export { type ModelTree, writeModelTree } from './model-tree.ts'
export { S3_CREDENTIALS, type ScriptedS3, startScriptedS3 } from './scripted-s3.ts'
export { type TarEntry, tarArchive } from './tar-archive.ts'
