"""The elements of Salesforce's metadata, so that a misspelt one is refused instead of ignored.

Source: Metadata API Developer Guide, "CustomObject" and "CustomField", API version 66.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from events.errors import InvalidDefinition
from events.model import xml

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["check"]

_NAMESPACE: Final = "http://soap.sforce.com/2006/04/metadata"
_OBJECT: Final = """
actionOverrides allowInChatterGroups articleTypeChannelDisplay businessProcesses compactLayoutAssignment
compactLayouts customHelp customHelpPage customSettingsType customSettingsVisibility dataStewardGroup
dataStewardUser deploymentStatus deprecated description enableActivities enableBulkApi enableDataTranslation
enableDivisions enableEnhancedLookup enableFeeds enableHistory enableLicensing enableReports enableSearch
enableSharing enableStreamingApi eventType externalDataSource externalName externalRepository externalSharingModel
fieldSets fields fullName gender historyRetentionPolicy household indexes isEventSubscriptionEnabled label listViews
mktDataLakeAttributes mktDataModelAttributes nameField namedFilter namedFilters pluralLabel profileSearchLayouts
publishBehavior recordTypeTrackFeedHistory recordTypeTrackHistory recordTypes searchLayouts sharingModel
sharingReasons sharingRecalculations startsWith validationRules visibility webLinks
"""
_FIELD: Final = """
aiPredictionField businessOwnerGroup businessOwnerUser businessStatus caseSensitive complianceGroup customDataType
defaultValue deleteConstraint deprecated description displayFormat displayLocationInDecimal encrypted
encryptionScheme escapeMarkup externalDeveloperName externalId fieldManageability formula formulaTreatBlanksAs
fullName globalPicklist indexed inlineHelpText isAIPredictionField isConvertLeadDisabled isFilteringDisabled
isNameField isSortingDisabled label length lookupFilter maskChar maskType metadataRelationshipControllingField
mktDataLakeFieldAttributes mktDataModelFieldAttributes picklist populateExistingRows precision readOnlyProxy
referenceTargetField referenceTo relationshipLabel relationshipName relationshipOrder reparentableMasterDetail
required restrictedAdminField scale securityClassification startingNumber stripMarkup summarizedField
summaryFilterItems summaryForeignKey summaryOperation trackFeedHistory trackHistory trackTrending translateData
trueValueIndexed type unique valueSet visibleLines writeRequiresMasterRead
"""
_ELEMENTS: Final = {"CustomObject": frozenset(_OBJECT.split()), "CustomField": frozenset(_FIELD.split())}


def check(element: Element, kind: str = "") -> None:
    """Raise InvalidDefinition, in Salesforce's words, for an element that a CustomObject or a CustomField lacks."""
    kind = kind or xml.local_name(element)
    for inner in element:
        name = xml.local_name(inner)
        if name and name not in _ELEMENTS[kind]:
            raise InvalidDefinition(
                f"Error parsing file: Element {{{_NAMESPACE}}}{name[:100]} invalid at this location in type {kind}"
            )
        if name == "fields":
            check(inner, "CustomField")
