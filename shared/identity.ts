/**
 * Who the app is to Microsoft Entra. A file of its own because it is imported when an identity is used for the first time, and
 * only then: the library takes tenths of a second to load, and who connects with keys never needs it.
 */
import { DefaultAzureCredential, ManagedIdentityCredential } from '@azure/identity';

/** The managed identity with that client id; without one, the app's own. */
export function managedIdentity(clientId: string | undefined): ManagedIdentityCredential {
  return new ManagedIdentityCredential(clientId ? { clientId } : {});
}

/** Whatever there is: settings, a managed identity, or the developer who has logged in. */
export function anyIdentity(clientId: string | undefined): DefaultAzureCredential {
  return new DefaultAzureCredential(clientId ? { managedIdentityClientId: clientId } : {});
}
