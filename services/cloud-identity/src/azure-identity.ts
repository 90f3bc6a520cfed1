import type { PipelineRequest, PipelineResponse } from '@azure/core-rest-pipeline'
import type * as Library from '@azure/identity'
import type { AzureIdentity, TokenSource } from '@tutti/repository'
import { TokenRequests, toMethod } from './token-requests.ts'

const SCOPE = 'https://storage.azure.com/.default'

/** Opens an identity with Azure's library. @throws Error of the library if it refuses the identity. */
export async function openAzure(identity: AzureIdentity): Promise<TokenSource> {
  const [library, { createHttpHeaders }] = await Promise.all([
    import('@azure/identity'),
    import('@azure/core-rest-pipeline'),
  ])
  const requests = new TokenRequests('Azure')
  const httpClient = {
    sendRequest: async (request: PipelineRequest): Promise<PipelineResponse> => {
      const { body } = request
      const { status, headers, text } = await requests.send({
        url: new URL(request.url),
        method: toMethod(request.method),
        headers: request.headers.toJSON(),
        ...(typeof body === 'string' && { body }),
      })
      const type = headers['content-type'] ?? 'application/json'
      return {
        request,
        status,
        headers: createHttpHeaders({ 'content-type': type }),
        bodyAsText: text,
      }
    },
  }
  // The bucket is asked again as a whole.
  const common = { httpClient, retryOptions: { maxRetries: 0 } }
  const credential = open(library, identity, common)
  return (send) => requests.ask(send, async () => (await credential.getToken(SCOPE))?.token)
}

function open(
  library: typeof Library,
  identity: AzureIdentity,
  common: Library.TokenCredentialOptions,
): Library.TokenCredential {
  if (identity.kind === 'managed') {
    const { clientId } = identity
    return new library.ManagedIdentityCredential({
      ...common,
      ...(clientId !== undefined && { clientId }),
    })
  }
  const { tenantId, clientId, authorityHost } = identity
  // Whoever names it trusts it: Azure is not asked whether it is one of its own.
  const authority =
    authorityHost === undefined ? {} : { authorityHost, disableInstanceDiscovery: true }
  const options = { ...common, ...authority }
  if (identity.kind === 'secret') {
    const { secret } = identity
    return new library.ClientSecretCredential(tenantId, clientId, secret.reveal(), options)
  }
  const { tokenFile: tokenFilePath } = identity
  return new library.WorkloadIdentityCredential({ ...options, tenantId, clientId, tokenFilePath })
}
